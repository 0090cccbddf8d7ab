"""Files of an older version move from the library to the state, even if the process dies in between."""

import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from older_state import modes
from served import wait

from capr.documents import BusyError, CaprError
from capr.serve.audit import Audit, AuditRecord, entries
from capr.serve.database import ServerDatabase
from capr.serve.settings import Settings
from capr.serve.state import State, open_state, state_folder
from capr.serve.tokens import TokenStore

OLD = {"tokens.json", "tokens.json.lock", "desk.db", "desk.lock", "jobs", "jobs.lock", "audit"}


def rename_to_old_names(library):
    """Give the columns of the database and the keys of the tokens the names that older versions use."""
    with sqlite3.connect(library / "desk.db") as database:
        for table in ("job", "saved", "feedback"):
            database.execute(f"ALTER TABLE {table} RENAME COLUMN created TO made")
    database.close()
    tokens = library / "tokens.json"
    tokens.write_text(tokens.read_text().replace('"created":', '"made":'))


class OlderState:
    """The files of an older version in the folder of a library."""

    def __init__(self, library):
        self.library, self.before = library, {path.name for path in library.iterdir()}
        self.token, record = TokenStore(library / "tokens.json").create("anna", "writer")
        self.who, self.created = record.id, record.created
        database = ServerDatabase(library / "desk.db")
        self.waiting = database.create_job(self.who, False, 1).id
        rename_to_old_names(library)
        with sqlite3.connect(library / "desk.db") as still_open:  # keeps the last change in the -wal
            still_open.execute("SELECT * FROM saved").fetchall()
            saved = ("9c34", self.who, "Lasix", "q=lasix", self.created)
            with sqlite3.connect(library / "desk.db") as older:
                older.execute("INSERT INTO saved (id, who, name, address, made) VALUES (?, ?, ?, ?, ?)", saved)
            older.close()
            for name in ("desk.db", "desk.db-wal", "desk.db-shm"):
                shutil.copy(library / name, library / f"{name}.copy")
        still_open.close()
        for name in ("desk.db", "desk.db-wal", "desk.db-shm"):
            (library / f"{name}.copy").rename(library / name)
        assert (library / "desk.db-wal").stat().st_size
        (library / "jobs" / self.waiting).mkdir(parents=True)
        (library / "jobs" / self.waiting / "note.txt").write_text("PLAN: It waited.")
        (library / "jobs.lock").touch()
        audit = Audit(library / "audit", size=1)
        for number in range(2):
            audit.append(audit.line(AuditRecord(), time="2024-03-18", who="anna", number=number))
        audit.close()

    def check(self, state):
        """Check that the state has all files, and the library has none of them."""
        token = TokenStore(state.tokens).find(self.token)
        assert (token.name, token.created) == ("anna", self.created)
        database = ServerDatabase(state.database)
        searches = [(row["name"], row["created"], row["made"]) for row in database.saved_searches(self.who)]
        assert searches == [("Lasix", self.created, self.created)]
        assert [job.id for job in database.jobs("waiting")] == [self.waiting]
        assert (state.jobs / self.waiting / "note.txt").read_text() == "PLAN: It waited."
        assert [row["number"] for row in entries(state.audit)] == [0, 1]
        assert {path.name for path in self.library.iterdir()} == self.before


@pytest.fixture
def older(folder):
    return OlderState(folder)


def test_all_files_move_once_with_a_log_message(folder, older, caplog):
    state = open_state(folder)
    older.check(state)
    assert modes(state.folder) == {}
    assert [record.getMessage() for record in caplog.records] == [
        f"moved audit, jobs, desk.db, tokens.json of an older version from {folder} to {folder}.state"
    ]
    open_state(folder)
    assert len(caplog.records) == 1


def test_the_database_in_a_state_gets_its_new_name(folder, older, caplog):
    state = open_state(folder)
    state.database.rename(state.folder / "desk.db")  # as in a state that an older version wrote, or in its backup
    (state.folder / "desk.lock").touch()
    older.check(open_state(folder))
    assert not [path.name for path in state.folder.iterdir() if path.name.startswith("desk.")]
    assert caplog.messages[1:] == [f"renamed {state.folder / 'desk.db'} of an older version to server.db"]


def test_a_database_in_use_keeps_its_old_name(folder, older):
    state = open_state(folder)
    state.database.rename(state.folder / "desk.db")
    ServerDatabase(state.folder / "desk.db")
    with sqlite3.connect(state.folder / "desk.db") as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM job").fetchone()
        with pytest.raises(BusyError, match="Fix: stop that server first"):
            open_state(folder)
    reading.close()
    older.check(open_state(folder))


def test_a_server_continues_the_work_of_the_older_one(folder, older, serve):
    client = serve(older.token)
    assert wait(client, older.waiting)["added"] == 1
    assert client.documents_of("waited") == ["note.txt"]
    assert [row["name"] for row in client.get("/api/saved").json()["saved"]] == ["Lasix"]
    assert client.with_token("").get("/api/stats").status_code == 401
    routes = [entry.get("route", "old") for entry in entries(State(state_folder(folder)).audit)]
    assert routes[:2] == ["old", "old"]
    assert len(routes) > 4


@pytest.mark.parametrize("command", [("token", "list"), ("audit",), ("token", "create", "--name", "bert")])
def test_every_command_moves_the_files(folder, older, run, command):
    code, out, _ = run(*command, folder)
    assert code == 0
    assert ("anna" in out) == (command[-1] != "bert")
    older.check(State(state_folder(folder)))


def test_files_move_to_the_folder_of_an_option(folder, older, tmp_path):
    older.check(open_state(folder, tmp_path / "elsewhere"))


def test_a_trail_named_by_an_option_stays(folder, older, run):
    Settings(library=str(folder), audit=str(folder / "audit")).open_state()
    assert len(list(entries(folder / "audit"))) == 2
    assert not (folder / "tokens.json").exists()
    assert len(run("audit", folder, "--audit", folder / "audit")[1].splitlines()) == 2


def test_no_command_moves_a_trail_that_the_last_server_used(folder, older, run):
    Settings(library=str(folder), audit=str(folder / "audit")).open_state()
    for arguments in (("token", "list", folder), ("token", "create", folder, "--name", "x"), ("audit", folder)):
        assert run(*arguments)[0] == 0
        assert len(list(entries(folder / "audit"))) == 2
    Settings(library=str(folder)).open_state()  # a server that keeps its trail in the state moves the trail there
    assert not (folder / "audit").exists()
    assert len(list(entries(open_state(folder).audit))) == 2


def test_a_linked_trail_stays_linked(folder, older, tmp_path, caplog):
    (folder / "audit").rename(tmp_path / "disk")
    (folder / "audit").symlink_to("../disk", target_is_directory=True)
    state = open_state(folder)
    older.check(state)
    assert state.audit.resolve() == tmp_path / "disk"
    open_state(folder)
    assert len(caplog.records) == 1


def test_files_of_the_state_are_not_replaced(folder, older, caplog):
    open_state(folder)
    TokenStore(folder / "tokens.json").create("mallory", "admin")
    older.before |= {"tokens.json", "tokens.json.lock"}
    older.check(open_state(folder))
    assert f"capr ignores tokens.json in {folder}" in caplog.text


def test_files_stay_while_an_older_server_adds_documents(folder, older):
    holder = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", holder, str(folder / "jobs.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(BusyError, match=r"a server of an older version runs\. Fix: stop that server first"):
            open_state(folder)
        assert {path.name for path in folder.iterdir()} >= OLD
        process.communicate(b"\n")
    older.check(open_state(folder))


def test_a_database_in_use_or_damaged_stays(folder, older):
    with sqlite3.connect(folder / "desk.db") as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM job").fetchone()
        with pytest.raises(BusyError, match="Fix: stop that server first"):
            open_state(folder)
    reading.close()
    content = (folder / "desk.db").read_bytes()
    (folder / "desk.db").write_bytes(b"not a database" * 100)
    with pytest.raises(CaprError, match=r"desk.db cannot be read .*Fix: restore desk.db"):
        open_state(folder)
    assert not (folder.with_name("library.state") / "tokens.json").exists()  # tokens move last
    (folder / "desk.db").write_bytes(content)
    older.check(open_state(folder))


OPEN = """
import sys
from capr.serve.state import open_state
from capr.serve.tokens import TokenStore
print(len(TokenStore(open_state(sys.argv[1]).tokens).all()))
"""


def test_several_processes_and_threads_start_together(folder, older):
    command = [sys.executable, "-c", OPEN, str(folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: len(TokenStore(open_state(folder).tokens).all()), range(8))) == {1}
    outputs = [process.communicate() for process in processes]
    assert [out.strip() for out, _ in outputs] == [b"1"] * 3
    older.check(State(state_folder(folder)))


# Moves the files of a library, and kills its own process at the file system change number `fatal_change`. With
# `remote`, the state is on another file system.
SELF_KILLING_MOVE = """
import errno, os, shutil, signal, sys
from pathlib import Path
from capr.serve import state

library, fatal_change, is_remote = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "remote"
changes = 0

def count_change():
    global changes
    changes += 1
    if changes == fatal_change:
        os.kill(os.getpid(), signal.SIGKILL)

def patch_path(name):
    original = getattr(Path, name)
    def patched(self, *arguments, **options):
        if is_remote and name == "rename" and self.parent != arguments[0].parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        original(self, *arguments, **options)
        count_change()
    setattr(Path, name, patched)

for name in ("rename", "unlink", "mkdir", "chmod", "replace"):
    patch_path(name)
for name in ("copy2", "rmtree"):
    original = getattr(shutil, name)
    def patched(*arguments, original=original):
        count_change()
        original(*arguments)
    setattr(shutil, name, patched)
checkpoint = state._checkpoint
def patched_checkpoint(file):
    checkpoint(file)
    Path.chmod(file, 0o600)
state._checkpoint = patched_checkpoint
state.open_state(library)
print("done")
"""


@pytest.mark.parametrize("file_system", ["local", "remote"])
def test_a_killed_move_loses_nothing(tmp_path, folder, file_system):
    older = OlderState(folder)
    backup = tmp_path / "backup"
    shutil.copytree(folder, backup)
    exit_codes = []
    while exit_codes[-1:] != [0]:
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_name("library.state"), ignore_errors=True)
        shutil.copytree(backup, folder)
        command = [sys.executable, "-c", SELF_KILLING_MOVE, str(folder), str(len(exit_codes) + 1), file_system]
        exit_codes.append(subprocess.run(command, capture_output=True, check=False).returncode)
        older.check(open_state(folder))
    assert set(exit_codes[:-1]) == {-9}
    assert len(exit_codes) > 10
