"""Adding and removing documents: jobs with progress, one writer at a time, and what an interrupted one says."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from served import problem, wait

from capr.search import Library
from capr.serve.desk import Desk
from capr.serve.jobs import INTERRUPTED, Jobs


def add(client, *documents, replace=False):
    reply = client.post("/api/documents", json={"documents": list(documents), "replace": replace})
    assert reply.status_code == 202, reply.text
    return wait(client, reply.json()["job"])


def test_documents_are_added_just_as_they_were_sent(client):
    text = "PLAN: Ca\u0301chexia \U0001f600 <b>\r\n end "
    sent = {"id": "né/w", "text": text, "title": "T", "metadata": {"patient": "N", "tags": ["a", 1, None, {"x": 2.5}]}}
    job = add(client, sent)
    assert (job["state"], job["done"], job["total"], job["added"]) == ("done", 1, 1, 1)
    found = client.get("/api/documents/n%C3%A9%2Fw").json()
    assert (found["text"], found["title"], found["metadata"]) == (text, "T", sent["metadata"])
    assert client.documents_of("end", filters={"patient": "N"}) == ["né/w"]


def test_adding_again(client):
    one = {"id": "a1", "text": "Other."}
    again = add(client, {"id": "a2", "text": client.get("/api/documents/a2").json()["text"],
                         "metadata": client.get("/api/documents/a2").json()["metadata"]})  # fmt: skip
    assert (again["unchanged"], again["done"]) == (1, 1)
    refused = add(client, one)
    assert (refused["state"], refused["added"], refused["done"]) == ("done", 0, 1)
    assert "with other contents" in refused["problems"][0]
    assert add(client, one, replace=True)["replaced"] == 1
    assert client.get("/api/documents/a1").json()["text"] == "Other."


def test_files_of_any_format(client, tmp_path):
    files = [
        ("files", ("../../etc/evil.txt", b"PLAN: Kachexie.", "text/plain")),
        ("files", ("notes.jsonl", json.dumps({"id": "j1", "text": "Jsonl kachexie."}).encode() + b"\n{broken\n", "application/json")),
        ("files", ("..", b"Nameless kachexie.", "text/plain")),
    ]  # fmt: skip
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


def test_gzip_files_unpack_to_no_more_than_is_allowed(serve):
    client = serve(unpacked=300_000, upload=50_000)
    bomb = records(0, 2000)
    assert len(bomb) < 50_000
    job = send(client, bomb_jsonl_gz=bomb)
    (told,) = job["problems"]
    assert told.startswith("bomb.jsonl.gz, line ")
    assert "more than the 300,000 bytes that are allowed" in told
    assert "Fix: send fewer files in each request, or smaller ones, or allow more (capr serve --unpacked)." in told
    assert job["state"] == "done"
    assert 0 < job["added"] < 300  # the records before
    assert send(client, fits_jsonl_gz=records(5000, 250))["added"] == 250  # each request counts for itself


def test_gzip_files_of_one_request_are_counted_together(serve):
    client = serve(unpacked=300_000)
    job = send(client, a_jsonl_gz=records(0, 250), b_jsonl_gz=records(1000, 250), c_txt=b"PLAN: Kachexie.")
    (told,) = job["problems"]
    assert told.startswith("b.jsonl.gz")
    assert 251 <= job["added"] < 300
    assert client.documents_of("kachexie") == ["c.txt"]


def test_a_document_that_could_not_be_sent_as_it_is_cannot_be_sent_packed(serve):
    client = serve(upload=50_000)
    job = send(client, long_txt_gz=gzip.compress(b"x " * 30_000), short_txt_gz=gzip.compress(b"PLAN: Kachexie."))
    (told,) = job["problems"]
    assert "long.txt.gz, record 'long.txt': the document has 60,000 characters, and 50,000 are allowed. Fix: " in told
    assert (job["added"], job["done"]) == (1, 2)


@pytest.mark.parametrize("name", ["metadata_csv", "metadata_tsv"])
def test_a_table_of_files_is_read_as_any_other(serve, name):
    """It would describe the files beside it, and be read whole, whatever it unpacks to."""
    client = serve(unpacked=300_000)
    table = gzip.compress(b"file,patient,text\nnote.txt,Z,word\n" + b"note.txt,Z,word\n" * 100_000)
    job = send(client, **{name: table}, note_txt=b"PLAN: Kachexie.")
    assert any("more than the 300,000 bytes" in told for told in job["problems"])
    assert "patient" not in client.hits("kachexie")[0]["metadata"]


def test_requests_that_add_nothing(client):
    problem(client.post("/api/documents", json={"documents": []}), 422)
    problem(client.post("/api/documents", json={"documents": [{"id": "", "text": "x"}]}), 422)
    told = problem(client.post("/api/documents", json={"documents": [{"id": 3}], "x": 1}), 422)
    assert len(told["errors"]) == 3
    problem(client.post("/api/documents", content=b"x", headers={"content-type": "text/plain"}), 415)
    problem(client.post("/api/documents", data={"replace": "true"}, files=[("files", ("", b""))]), 422)
    problem(client.post("/api/documents", files={"f": ("a.txt", b"x")}, data={"replace": "maybe"}), 422)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post("/api/documents", content=b"--x\r\nrubbish", headers=broken).status_code in (400, 422)
    problem(client.post("/api/documents", content=b"x", headers={"content-type": "multipart/form-data"}), 400)


@pytest.mark.parametrize("name", ["漢" * 200 + ".txt", "𝒜" * 149 + ".txt", "x" * 300 + ".txt", "." * 200, "a/../b.txt"])
def test_names_of_any_length(client, name):
    job = client.post("/api/documents", files={"files": (name, b"PLAN: Rest.")}).json()["job"]
    assert wait(client, job)["added"] == 1


def test_documents_that_cannot_be_written_leave_nothing(client, folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_bytes", full)
        told = problem(client.post("/api/documents", files={"files": ("a.txt", b"PLAN: Rest.")}), 503)
    assert "No space left" in told["detail"]
    assert list((folder / "jobs").iterdir()) == []
    assert client.server.desk.jobs("waiting") == []
    assert [job.state for job in client.server.desk.jobs("failed")] == ["failed"]


def test_documents_whose_process_was_killed_while_they_were_written(client, folder):
    desk = client.server.desk
    job = desk.new_job("", False, None)
    (folder / "jobs" / f"{job.id}.part").mkdir(parents=True)
    time.sleep(1.2)
    assert desk.job(job.id).state == "waiting"
    desk.tell(job.id, made="2024-03-18T09:30:00Z")
    assert wait(client, job.id)["state"] == "interrupted"
    assert list((folder / "jobs").iterdir()) == []


def test_removing(client):
    assert client.delete("/api/documents/a1").json() == {"removed": 1}
    problem(client.get("/api/documents/a1"), 404)
    assert client.documents_of("asthma") == []
    problem(client.delete("/api/documents/a1"), 404)


def test_jobs_belong_to_whoever_made_them(client, tokens):
    one, other, admin = (
        client.with_token(tokens(role, name=name)) for role, name in (("writer", "a"), ("writer", "b"), ("admin", "c"))
    )
    job = one.post("/api/documents", json={"documents": [{"id": "n", "text": "x"}]}).json()["job"]
    assert wait(one, job)["state"] == "done"
    problem(other.get(f"/api/jobs/{job}"), 404)
    assert admin.get(f"/api/jobs/{job}").status_code == 200
    problem(one.get("/api/jobs/nothing"), 404)


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


def test_somebody_else_is_writing(client, folder):
    with Library(folder, encoder="none") as other, other.engine.writing():
        told = problem(client.delete("/api/documents/a1"), 409)
        assert "is being written by process" in told["detail"]
        assert str(folder) not in told["detail"]
        job = add(client, {"id": "n", "text": "x"})
        assert job["state"] == "failed"
        assert "is being written" in job["problems"][0]
        assert client.documents_of("lasix")
    assert client.delete("/api/documents/a1").status_code == 200


ADDING = """
import sys, time
from pathlib import Path
import capr.search.library as library
from capr.search import Library
from capr.serve.desk import Desk
from capr.serve.jobs import Jobs
library.SECONDS = 0.0
kept = Library(Path(sys.argv[1]), encoder="none", ranker="none")
desk = Desk(kept.path)
jobs = Jobs(kept, desk)
job = jobs.add("", [{"id": f"k{i}", "text": f"PLAN: Part {i} of it. " * 50} for i in range(3000)], {}, False)
print(job.id, flush=True)
time.sleep(60)
"""


def test_a_job_that_was_killed_says_so_and_can_be_sent_again(serve, folder):
    client = serve()
    process = subprocess.Popen([sys.executable, "-c", ADDING, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        job = process.stdout.readline().strip()
        for _ in range(1000):
            found = client.get(f"/api/jobs/{job}").json()
            if found["done"] > 100:
                break
            time.sleep(0.02)
        assert found["state"] == "running"  # another process does it, and this one sees how far it is
        assert found["total"] == 3000
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    found = wait(client, job)
    assert found["state"] == "interrupted"
    assert found["problems"] == [INTERRUPTED]
    assert not (folder / "jobs" / job).exists()
    kept = client.get("/api/stats").json()["documents"] - 6
    assert kept >= found["done"] > 100
    again = add(client, *({"id": f"k{i}", "text": f"PLAN: Part {i} of it. " * 50} for i in range(3000)))
    assert (again["state"], again["unchanged"], again["added"]) == ("done", kept, 3000 - kept)


def test_a_job_that_waited_is_done_by_the_next_server(folder, serve):
    desk = Desk(folder)
    job = desk.new_job("", False, 1)
    (folder / "jobs" / job.id).mkdir(parents=True)
    (folder / "jobs" / job.id / "documents.jsonl").write_text(json.dumps({"id": "w", "text": "Waited."}) + "\n")
    assert wait(serve(), job.id)["added"] == 1


def test_stopping_in_the_middle_of_a_job(folder, monkeypatch):
    monkeypatch.setattr("capr.search.library.SECONDS", 0.0)
    library = Library(folder, encoder="none", ranker="none")
    desk = Desk(folder)
    jobs = Jobs(library, desk)
    job = jobs.add("", [{"id": f"s{i}", "text": "word " * 200} for i in range(5000)], {}, False)
    while desk.job(job.id).done < 10:
        time.sleep(0.01)
    begun = time.monotonic()
    jobs.close(grace=0.1)
    assert time.monotonic() - begun < 5
    found = desk.job(job.id)
    assert found.state == "interrupted"
    assert library.stats().documents == 6 + found.done
    library.close()


def test_a_job_in_which_something_breaks(client, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("inside")

    monkeypatch.setattr(client.server.library, "add", broken)
    job = add(client, {"id": "n", "text": "x"})
    assert job["state"] == "failed"
    assert "look into the log" in job["problems"][0]
    monkeypatch.undo()
    assert add(client, {"id": "n", "text": "x"})["state"] == "done"


def test_many_problems_are_counted(client):
    sent = [{"id": "a1", "text": f"{i}"} for i in range(150)]
    job = add(client, *sent)
    assert (len(job["problems"]), job["more_problems"]) == (100, 50)


@pytest.mark.parametrize("rights", [0o500])
def test_a_disk_that_cannot_be_written(client, folder, rights):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (folder / "jobs").mkdir(exist_ok=True)
    (folder / "jobs").chmod(rights)
    assert client.post("/api/documents", json={"documents": [{"id": "n", "text": "x"}]}).status_code >= 500
    shutil.rmtree(folder / "jobs")


def test_documents_of_others_are_not_replaced_by_a_restricted_token(client, tokens):
    reader = client.with_token(tokens(patient=["A"]))
    problem(reader.post("/api/documents", json={"documents": [{"id": "b1", "text": "x"}], "replace": True}), 403)
    problem(reader.delete("/api/documents/b1"), 403)
