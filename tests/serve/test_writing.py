"""Adding and removing documents: jobs with progress, one writer at a time, and interrupted jobs."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from served import problem, wait

from capr.search import Library
from capr.serve.database import ServerDatabase
from capr.serve.jobs import INTERRUPTED, Jobs


def add(client, *documents, replace=False):
    reply = client.post("/api/documents", json={"documents": list(documents), "replace": replace})
    assert reply.status_code == 202, reply.text
    return wait(client, reply.json()["job"])


def test_documents_are_stored_exactly_as_sent(client):
    text = "PLAN: Ca\u0301chexia \U0001f600 <b>\r\n end "
    sent = {"id": "né/w", "text": text, "title": "T", "metadata": {"patient": "N", "tags": ["a", 1, None, {"x": 2.5}]}}
    job = add(client, sent)
    assert (job["state"], job["done"], job["total"], job["added"]) == ("done", 1, 1, 1)
    document = client.get("/api/documents/n%C3%A9%2Fw").json()
    assert (document["text"], document["title"], document["metadata"]) == (text, "T", sent["metadata"])
    assert client.documents_of("end", filters={"patient": "N"}) == ["né/w"]


def test_adding_again(client):
    document = {"id": "a1", "text": "Other."}
    again = add(
        client,
        {
            "id": "a2",
            "text": client.get("/api/documents/a2").json()["text"],
            "metadata": client.get("/api/documents/a2").json()["metadata"],
        },
    )
    assert (again["unchanged"], again["done"]) == (1, 1)
    rejected = add(client, document)
    assert (rejected["state"], rejected["added"], rejected["done"]) == ("done", 0, 1)
    assert "with other contents" in rejected["problems"][0]
    assert add(client, document, replace=True)["replaced"] == 1
    assert client.get("/api/documents/a1").json()["text"] == "Other."


def test_files_of_any_format(client, tmp_path):
    files = [
        ("files", ("../../etc/evil.txt", b"PLAN: Kachexie.", "text/plain")),
        (
            "files",
            (
                "notes.jsonl",
                json.dumps({"id": "j1", "text": "Jsonl kachexie."}).encode() + b"\n{broken\n",
                "application/json",
            ),
        ),
        ("files", ("..", b"Nameless kachexie.", "text/plain")),
    ]
    reply = client.post("/api/documents", files=files, data={"replace": "false"})
    assert reply.status_code == 202, reply.text
    job = wait(client, reply.json()["job"])
    assert (job["state"], job["added"], job["total"]) == ("done", 3, 4)
    assert "notes.jsonl, line 2" in job["problems"][0]
    assert len(client.documents_of("kachexie")) == 3
    for hit in client.hits("kachexie"):
        assert "/" not in hit["metadata"]["file"]
        assert "source" not in hit["metadata"]
    assert not (tmp_path / "etc").exists()


def send(client, **files):
    sent = [("files", (name.replace("_", "."), content)) for name, content in files.items()]
    reply = client.post("/api/documents", files=sent)
    assert reply.status_code == 202, reply.text
    return wait(client, reply.json()["job"])


def records(first, count, letters=1000):
    lines = [json.dumps({"id": f"g{first + i}", "text": f"{i} " + "x" * letters}) + "\n" for i in range(count)]
    return gzip.compress("".join(lines).encode())


def test_gzip_files_unpack_up_to_the_limit(serve):
    client = serve(max_unpacked=300_000, max_upload=50_000)
    bomb = records(0, 2000)
    assert len(bomb) < 50_000
    job = send(client, bomb_jsonl_gz=bomb)
    (message,) = job["problems"]
    assert message.startswith("bomb.jsonl.gz, line ")
    assert "more than the 300,000 bytes that are allowed" in message
    assert (
        "Fix: send fewer files in each request, or smaller ones, or allow more (capr serve --max-unpacked-mb)."
        in message
    )
    assert job["state"] == "done"
    assert 0 < job["added"] < 300  # the records before the limit
    assert send(client, fits_jsonl_gz=records(5000, 250))["added"] == 250  # the next request has its own limit


def test_the_limit_covers_all_gzip_files_of_a_request(serve):
    client = serve(max_unpacked=300_000)
    job = send(client, a_jsonl_gz=records(0, 250), b_jsonl_gz=records(1000, 250), c_txt=b"PLAN: Kachexie.")
    (message,) = job["problems"]
    assert message.startswith("b.jsonl.gz")
    assert 251 <= job["added"] < 300
    assert client.documents_of("kachexie") == ["c.txt"]


def test_the_limit_of_a_document_applies_to_gzip_files(serve):
    client = serve(max_upload=50_000)
    job = send(client, long_txt_gz=gzip.compress(b"x " * 30_000), short_txt_gz=gzip.compress(b"PLAN: Kachexie."))
    (message,) = job["problems"]
    assert (
        "long.txt.gz, record 'long.txt': the document has 60,000 characters, and 50,000 are allowed. Fix: " in message
    )
    assert (job["added"], job["done"]) == (1, 2)


@pytest.mark.parametrize("name", ["metadata_csv", "metadata_tsv"])
def test_an_uploaded_table_of_metadata_is_read_as_documents(serve, name):
    """As metadata of the other files, it would be read at once, without the limit."""
    client = serve(max_unpacked=300_000)
    table = gzip.compress(b"file,patient,text\nnote.txt,Z,word\n" + b"note.txt,Z,word\n" * 100_000)
    job = send(client, **{name: table}, note_txt=b"PLAN: Kachexie.")
    assert any("more than the 300,000 bytes" in message for message in job["problems"])
    assert "patient" not in client.hits("kachexie")[0]["metadata"]


def test_requests_without_valid_documents_are_rejected(client):
    problem(client.post("/api/documents", json={"documents": []}), 422)
    problem(client.post("/api/documents", json={"documents": [{"id": "", "text": "x"}]}), 422)
    error = problem(client.post("/api/documents", json={"documents": [{"id": 3}], "x": 1}), 422)
    assert len(error["errors"]) == 3
    problem(client.post("/api/documents", content=b"x", headers={"content-type": "text/plain"}), 415)
    problem(client.post("/api/documents", data={"replace": "true"}, files=[("files", ("", b""))]), 422)
    problem(client.post("/api/documents", files={"f": ("a.txt", b"x")}, data={"replace": "maybe"}), 422)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post("/api/documents", content=b"--x\r\nrubbish", headers=broken).status_code in (400, 422)
    problem(client.post("/api/documents", content=b"x", headers={"content-type": "multipart/form-data"}), 400)


@pytest.mark.parametrize("name", ["漢" * 200 + ".txt", "𝒜" * 149 + ".txt", "x" * 300 + ".txt", "." * 200, "a/../b.txt"])
def test_file_names_of_any_length(client, name):
    job = client.post("/api/documents", files={"files": (name, b"PLAN: Rest.")}).json()["job"]
    assert wait(client, job)["added"] == 1


def test_documents_that_cannot_be_written_leave_nothing(client, state, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("capr.serve.jobs._write", full)
        error = problem(client.post("/api/documents", files={"files": ("a.txt", b"PLAN: Rest.")}), 503)
    assert "No space left" in error["detail"]
    assert list(state.jobs.iterdir()) == []
    assert client.server.database.jobs("waiting") == []
    assert [job.state for job in client.server.database.jobs("failed")] == ["failed"]


def test_a_job_whose_documents_were_never_complete_is_interrupted(client, state):
    database = client.server.database
    job = database.create_job("", False, None)
    (state.jobs / f"{job.id}.part").mkdir(parents=True)
    time.sleep(1.2)
    assert database.job(job.id).state == "waiting"
    database.update_job(job.id, created="2024-03-18T09:30:00Z")
    assert wait(client, job.id)["state"] == "interrupted"
    assert list(state.jobs.iterdir()) == []


def test_removing(client):
    assert client.delete("/api/documents/a1").json() == {"removed": 1}
    problem(client.get("/api/documents/a1"), 404)
    assert client.documents_of("asthma") == []
    problem(client.delete("/api/documents/a1"), 404)


def test_a_job_is_visible_to_its_token_and_to_admins(client, tokens):
    first, second, admin = (
        client.with_token(tokens(role, name=name)) for role, name in (("writer", "a"), ("writer", "b"), ("admin", "c"))
    )
    job = first.post("/api/documents", json={"documents": [{"id": "n", "text": "x"}]}).json()["job"]
    assert wait(first, job)["state"] == "done"
    problem(second.get(f"/api/jobs/{job}"), 404)
    assert admin.get(f"/api/jobs/{job}").status_code == 200
    problem(first.get("/api/jobs/nothing"), 404)


def test_events_follow_a_job(client):
    job = client.post("/api/documents", json={"documents": [{"id": "n", "text": "x"}]}).json()["job"]
    reply = client.get(f"/api/jobs/{job}/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in reply.text.splitlines() if line]
    assert events[-1]["state"] == "done"
    assert all(event["job"] == job for event in events)


def test_jobs_run_one_after_the_other(client):
    jobs = [
        client.post(
            "/api/documents", json={"documents": [{"id": f"{i}-{j}", "text": "word"} for j in range(20)]}
        ).json()["job"]
        for i in range(4)
    ]
    assert [wait(client, job)["added"] for job in jobs] == [20] * 4
    assert client.get("/api/stats").json()["documents"] == 86


def test_another_process_is_writing(client, folder):
    with Library(folder, encoder="none") as other, other.engine.writing():
        error = problem(client.delete("/api/documents/a1"), 409)
        assert "is being written by process" in error["detail"]
        assert str(folder) not in error["detail"]
        job = add(client, {"id": "n", "text": "x"})
        assert job["state"] == "failed"
        assert "is being written" in job["problems"][0]
        assert client.documents_of("lasix")
    assert client.delete("/api/documents/a1").status_code == 200


ADDING = """
import sys, time
from pathlib import Path
from capr.search import Library, batches
from capr.serve.database import ServerDatabase
from capr.serve.jobs import Jobs
from capr.serve.state import open_state
batches.SECONDS = 0.0
library = Library(Path(sys.argv[1]), encoder="none", ranker="none")
state = open_state(library.path)
database = ServerDatabase(state.database)
jobs = Jobs(library, database, state.jobs)
job = jobs.add("", [{"id": f"k{i}", "text": f"PLAN: Part {i} of it. " * 50} for i in range(3000)], {}, False)
print(job.id, flush=True)
time.sleep(60)
"""


def test_a_killed_job_is_interrupted_and_can_be_sent_again(serve, folder, state):
    client = serve()
    process = subprocess.Popen([sys.executable, "-c", ADDING, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        job = process.stdout.readline().strip()
        for _ in range(1000):
            progress = client.get(f"/api/jobs/{job}").json()
            if progress["done"] > 100:
                break
            time.sleep(0.02)
        assert progress["state"] == "running"  # this process sees the progress of the other one
        assert progress["total"] == 3000
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    progress = wait(client, job)
    assert progress["state"] == "interrupted"
    assert progress["problems"] == [INTERRUPTED]
    assert not (state.jobs / job).exists()
    count = client.get("/api/stats").json()["documents"] - 6
    assert count >= progress["done"] > 100
    again = add(client, *({"id": f"k{i}", "text": f"PLAN: Part {i} of it. " * 50} for i in range(3000)))
    assert (again["state"], again["unchanged"], again["added"]) == ("done", count, 3000 - count)


def test_the_next_server_runs_a_waiting_job(state, serve):
    database = ServerDatabase(state.database)
    job = database.create_job("", False, 1)
    (state.jobs / job.id).mkdir(parents=True)
    (state.jobs / job.id / "documents.jsonl").write_text(json.dumps({"id": "w", "text": "Waited."}) + "\n")
    assert wait(serve(), job.id)["added"] == 1


def test_stopping_in_the_middle_of_a_job(folder, monkeypatch, state):
    monkeypatch.setattr("capr.search.batches.SECONDS", 0.0)
    library = Library(folder, encoder="none", ranker="none")
    database = ServerDatabase(state.database)
    jobs = Jobs(library, database, state.jobs)
    job = jobs.add("", [{"id": f"s{i}", "text": "word " * 200} for i in range(5000)], {}, False)
    while database.job(job.id).done < 10:
        time.sleep(0.01)
    started = time.monotonic()
    jobs.close(grace=0.1)
    assert time.monotonic() - started < 5
    progress = database.job(job.id)
    assert progress.state == "interrupted"
    assert library.stats().documents == 6 + progress.done
    library.close()


def test_an_internal_error_fails_the_job(client, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("inside")

    monkeypatch.setattr(client.server.library, "add", broken)
    job = add(client, {"id": "n", "text": "x"})
    assert job["state"] == "failed"
    assert "look in the log" in job["problems"][0]
    monkeypatch.undo()
    assert add(client, {"id": "n", "text": "x"})["state"] == "done"


def test_many_problems_are_counted(client):
    sent = [{"id": "a1", "text": f"{i}"} for i in range(150)]
    job = add(client, *sent)
    assert (len(job["problems"]), job["more_problems"]) == (100, 50)


@pytest.mark.parametrize("rights", [0o500])
def test_a_disk_that_cannot_be_written(client, state, rights):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    state.jobs.mkdir(exist_ok=True)
    state.jobs.chmod(rights)
    assert client.post("/api/documents", json={"documents": [{"id": "n", "text": "x"}]}).status_code >= 500
    shutil.rmtree(state.jobs)


def test_documents_of_others_are_not_replaced_by_a_restricted_token(client, tokens):
    reader = client.with_token(tokens(patient=["A"]))
    problem(reader.post("/api/documents", json={"documents": [{"id": "b1", "text": "x"}], "replace": True}), 403)
    problem(reader.delete("/api/documents/b1"), 403)
