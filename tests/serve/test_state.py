"""The state of a server: its folder, its owner, and its file modes."""

import json
import os
import shutil
import stat

import pytest
from older_state import modes
from served import wait

from capr.documents import CaprError
from capr.search import Library
from capr.serve.database import ServerDatabase
from capr.serve.state import State, open_state, state_folder
from capr.serve.tokens import TokenStore


def test_the_default_folder_is_beside_the_library(tmp_path, monkeypatch):
    assert state_folder(tmp_path / "notes") == tmp_path / "notes.state"
    assert state_folder(str(tmp_path / "notes") + "/") == tmp_path / "notes.state"
    assert state_folder(tmp_path / "notes", tmp_path / "other") == tmp_path / "other"
    monkeypatch.chdir(tmp_path)
    assert state_folder("notes") == tmp_path / "notes.state"
    (tmp_path / "link").symlink_to(tmp_path / "notes", target_is_directory=True)
    assert state_folder("link") == tmp_path / "notes.state"


def test_the_state_of_a_remote_library_needs_a_folder(tmp_path):
    with pytest.raises(CaprError, match=r"opensearch://node:9200/notes has no folder.* Fix: .*--state") as raised:
        state_folder("opensearch://anna:secret@node:9200/notes")
    assert "secret" not in str(raised.value)
    state = open_state("opensearch://anna:secret@node:9200/notes", tmp_path / "state")
    assert "secret" not in (state.folder / "state.json").read_text()
    assert open_state("opensearch://bert@node:9200/notes", tmp_path / "state") == state
    with pytest.raises(CaprError, match="is the state of the library opensearch://node:9200/notes"):
        open_state("opensearch://node:9200/letters", tmp_path / "state")


def test_a_server_writes_no_other_files_into_the_library(serve, folder):
    before = {path.name for path in folder.iterdir()}
    client = serve()
    job = client.post("/api/documents", files={"files": ("a.txt", b"PLAN: Rest.")}).json()["job"]
    assert wait(client, job)["added"] == 1
    client.post("/api/saved", json={"name": "Lasix", "address": "q=lasix"})
    assert {path.name for path in folder.iterdir()} - {"library.db-wal", "library.db-shm"} == before
    names = {path.name for path in folder.with_name("library.state").iterdir()} - {"server.db-wal", "server.db-shm"}
    assert names == {"state.json", "state.lock", "server.db", "server.lock", "jobs", "jobs.lock", "audit"}


def test_the_state_is_private(serve, tokens, state):
    umask = os.umask(0)
    try:
        client = serve(token=tokens("writer"))
        for _ in range(2):
            job = client.post("/api/documents", files={"files": ("a.txt", b"PLAN: Rest.")}).json()["job"]
            wait(client, job)
        client.post("/api/saved", json={"name": "Lasix", "address": "q=lasix"})
        assert modes(state.folder) == {}
    finally:
        os.umask(umask)


def test_uploads_are_private(state, folder):
    from capr.serve.jobs import Jobs

    umask = os.umask(0)
    try:
        with Library(folder, encoder="none", ranker="none") as library:
            jobs = Jobs(library, ServerDatabase(state.database), state.jobs)
            with jobs._try_lock() as is_locked:  # so that the job does not run
                assert is_locked
                job = jobs.add("", [], {"a.txt": b"PLAN: Rest."}, False)
                assert (state.jobs / job.id / "a.txt").is_file()
                assert modes(state.folder) == {}
            jobs.close(5)
    finally:
        os.umask(umask)


def test_a_folder_that_others_may_read_becomes_private(folder, tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    open_state(folder, tmp_path / "open")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_created_by_root_belong_to_the_owner_of_the_library(folder):
    os.chown(folder, 1234, 1234)
    state = open_state(folder)
    for path in (state.folder, *state.folder.iterdir()):
        assert (path.name, path.stat().st_uid) == (path.name, 1234)


def test_a_folder_that_cannot_be_written(folder, tmp_path, run):
    (tmp_path / "file").touch()
    with pytest.raises(CaprError, match=r"cannot be stored in .*file/state \(File exists.*Fix: give .*--state"):
        open_state(folder, tmp_path / "file" / "state")
    code, _, error = run("token", "create", folder, "--name", "anna", "--state", tmp_path / "file" / "state")
    assert code == 2
    assert "Fix: give this user write access" in error.replace("\n", " ")


def test_a_folder_with_other_files_is_rejected(folder, tmp_path):
    (tmp_path / "home").mkdir(mode=0o755)
    (tmp_path / "home" / "thesis.doc").touch()
    rights = (tmp_path / "home").stat().st_mode
    with pytest.raises(CaprError, match=r"holds other files \(thesis.doc\).*Fix: name an empty folder"):
        open_state(folder, tmp_path / "home")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["thesis.doc"]
    assert (tmp_path / "home").stat().st_mode == rights


def test_the_folder_of_the_library_cannot_hold_its_state(folder):
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(CaprError, match=r"cannot be the folder of its state.*Fix: "):
        open_state(folder, folder)
    assert {path.name for path in folder.iterdir()} == before


def test_a_restored_backup_is_accepted(folder, tmp_path, tokens, state):
    token = tokens()
    (tmp_path / "restored").mkdir()
    shutil.copy(state.tokens, tmp_path / "restored")
    assert TokenStore(open_state(folder, tmp_path / "restored").tokens).find(token)


def test_two_libraries_cannot_share_a_state(folder, tmp_path, run):
    shutil.copytree(folder, tmp_path / "letters")
    open_state(folder, tmp_path / "state")
    assert json.loads((tmp_path / "state" / "state.json").read_text()) == {"library": "../library"}
    with pytest.raises(CaprError) as raised:
        open_state(tmp_path / "letters", tmp_path / "state")
    fact, _, fix = str(raised.value).partition(" Fix: ")
    assert fact.startswith(f"{tmp_path / 'state'} is the state of the library {folder}, ")
    assert fix.startswith("name another folder with --state; ")
    code, _, error = run("serve", tmp_path / "letters", "--state", tmp_path / "state", "--port", "0")
    assert code == 2
    assert "is the state of the library" in error.replace("\n", " ")


def test_library_and_state_can_be_copied_together(folder, tmp_path, state):
    shutil.copytree(folder, tmp_path / "copy" / "library")
    shutil.copytree(state.folder, tmp_path / "copy" / "library.state")
    assert open_state(tmp_path / "copy" / "library") == State(tmp_path / "copy" / "library.state")


def test_a_renamed_library_keeps_its_state(folder, tmp_path, tokens, caplog):
    token = tokens()
    folder.rename(tmp_path / "notes")
    folder.with_name("library.state").rename(tmp_path / "notes.state")
    assert TokenStore(open_state(tmp_path / "notes").tokens).find(token)
    assert "does not exist any more" in caplog.text
    caplog.clear()
    open_state(tmp_path / "notes")
    assert caplog.text == ""


def test_a_damaged_record_of_the_library_is_an_error(folder, state):
    (state.folder / "state.json").write_text("{")
    with pytest.raises(CaprError, match=r"state.json.* is damaged.*Fix: remove it"):
        open_state(folder)


def test_commands_and_server_have_the_same_state(folder, tmp_path, run, serve):
    for options in ((), ("--state", tmp_path / "elsewhere" / "state")):
        token = run("token", "create", folder, "--name", "anna", *options)[1].strip()
        settings = {"state": str(options[1])} if options else {}
        assert serve(token, **settings).documents_of("lasix")
        assert "anna" in run("token", "list", folder, *options)[1]
        assert "POST /api/search" in run("audit", folder, *options)[1]
        assert "Revoked token " in run("token", "revoke", folder, "anna", *options)[1]
    assert (tmp_path / "elsewhere" / "state" / "tokens.json").is_file()


def test_commands_that_only_read_create_no_folder(folder, tmp_path, run):
    assert "no token" in run("token", "list", folder)[1]
    assert "there is no audit trail" in run("audit", folder)[2].replace("\n", " ")
    assert run("token", "revoke", folder, "anna")[0] == 2
    for command in (("token", "list"), ("audit",), ("token", "create", "--name", "anna")):
        code, _, error = run(*command, tmp_path / "none")
        assert code == 2
        assert "there is no library" in error.replace("\n", " ")
    assert {path.name for path in tmp_path.iterdir()} == {"library"}
