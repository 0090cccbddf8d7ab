"""The audit trail: complete, on disk before the reply, rotated, shared by processes, and required for every reply."""

import asyncio
import errno
import json
import os
import subprocess
import sys
import time

import pytest
from served import problem, wait

from capr.cli import app
from capr.documents import CaprError
from capr.serve.audit import Audit, AuditRecord, entries


def line(number, **more):
    return json.dumps({"time": "2024-03-18T09:30:00.000+00:00", "number": number, **more}).encode() + b"\n"


def test_reads_are_recorded(client, tokens, trail):
    holder = client.with_token(tokens(name="Dr. Ames"))
    holder.search("lasix", filters={"patient": ["A", "B"]}, without=["negated"])
    holder.get("/api/documents/a1")
    holder.post("/api/ask", json={"question": "40 mg?", "document": "a2"})
    holder.post("/api/documents/a1/scores", json={"entity": "asthma"})
    holder.get("/api/patients")
    search, document, ask, scores, patients = trail()
    assert search["who"] == "Dr. Ames"
    assert search["token"]
    assert search["address"] == "127.0.0.1"
    assert search["time"].startswith("20")
    assert search["seconds"] >= 0
    assert (search["method"], search["route"], search["status"]) == ("POST", "/api/search", 200)
    assert search["query"] == {"query": "lasix"}
    assert search["filters"] == {"patient": ["A", "B"], "without": ["negated"]}
    assert set(search["documents"]) == {"a2", "b1"}
    assert (document["route"], document["documents"]) == ("/api/documents/{id:path}", ["a1"])
    assert (ask["query"], ask["filters"], ask["documents"]) == ({"question": "40 mg?"}, {"document": "a2"}, ["a2"])
    assert (scores["query"], scores["documents"]) == ({"entity": "asthma"}, ["a1"])
    assert patients["patients"] == ["A", "B", "C"]


def test_changes_and_rejected_requests_are_recorded(client, tokens, trail):
    writer = client.with_token(tokens("writer", name="w"))
    writer.delete("/api/documents/c1")
    client.get("/api/me")
    client.with_token("capr_wrong").get("/api/documents/b1")
    writer.get("/api/feedback/export")
    writer.get("/api/documents/none")
    lines = [(entry["who"], entry["method"], entry["status"]) for entry in trail()]
    assert lines == [("w", "DELETE", 200), ("", "GET", 401), ("", "GET", 401), ("w", "GET", 403), ("w", "GET", 404)]
    assert trail()[0]["documents"] == ["c1"]


def test_documents_that_the_reply_does_not_show_are_recorded_as_requested(client, tokens, trail, state):
    reader = client.with_token(tokens(name="r", patient=["A"]))
    for path in ("/api/documents/none", "/api/documents/b1", "/api/documents/a1/passages/99"):
        reader.get(path)
    reader.delete("/api/documents/a1")
    assert [(entry["status"], entry.get("requested"), entry.get("documents")) for entry in trail()] == [
        (404, ["none"], None),
        (404, ["b1"], None),
        (404, ["a1"], None),
        (403, None, None),
    ]
    reader.get("/api/documents/a1")
    assert len(list(entries(state.audit, document="a1"))) == 1
    assert list(entries(state.audit, document="b1")) == []


def test_rejected_requests_are_recorded_with_their_path(client, tokens, trail):
    tokens()
    client.with_token("capr_wrong").get("/api/documents/b1?patient=B")
    client.get("/wp-admin/" + "x" * 5000)
    first, second = trail()
    assert (first["route"], first["path"], first["status"]) == ("other", "/api/documents/b1", 401)
    assert (second["path"], second["status"]) == (("/wp-admin/" + "x" * 5000)[:1000], 401)


def test_a_job_records_its_documents_and_the_holder_of_its_token(client, tokens, trail, state):
    writer = client.with_token(tokens("writer", name="nightly"))
    notes = b"".join(json.dumps({"id": f"j{n}", "text": f"Note {n}."}).encode() + b"\n" for n in range(3))
    for request in (
        {"files": [("files", ("notes.jsonl", notes, "application/json"))]},
        {"json": {"documents": [{"id": "k1", "text": "Note."}, {"id": "a1", "text": "Other."}]}},
    ):
        wait(writer, writer.post("/api/documents", **request).json()["job"])
    (added,) = entries(state.audit, document="j1")
    assert (added["who"], added["documents"], added["route"]) == ("nightly", ["j0", "j1", "j2"], "job")
    request = next(entry for entry in trail() if entry["route"] == "/api/documents")
    assert (request["job"], request["files"]) == (added["job"], ["notes.jsonl"])
    (second,) = entries(state.audit, document="k1")
    assert second["documents"] == ["k1"]
    assert list(entries(state.audit, document="a1")) == []
    assert next(entry for entry in trail() if entry.get("requested"))["requested"] == ["k1", "a1"]


def test_a_job_that_cannot_be_recorded_fails(client, monkeypatch):
    append = client.server.audit.append

    def full(lines):
        if b'"route": "job"' in lines:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(lines)

    monkeypatch.setattr(client.server.audit, "append", full)
    job = wait(client, client.post("/api/documents", json={"documents": [{"id": "k1", "text": "Note."}]}).json()["job"])
    assert job["state"] == "failed"
    assert "audit trail cannot be written (No space left on device). Fix: free space" in job["problems"][0]


def test_false_null_and_zero_are_recorded(client, trail):
    body = {"query": "lasix", "document": "a1", "begin": 0, "end": 5}
    for answers in (False, True, None):
        client.post("/api/feedback", json={**body, "answers": answers})
    assert [entry["answers"] for entry in trail()] == [False, True, None]
    client.get("/api/documents/a1/passages/0")
    assert trail()[-1]["passage"] == 0
    client.get("/api/jobs/5f1d")
    assert (trail()[-1]["job"], trail()[-1]["status"]) == ("5f1d", 404)
    client.post("/api/facets", json={"filters": {"source": "west"}})
    assert trail()[-1]["patients"] == ["B", "A"]


def test_open_addresses_are_not_recorded(client, state):
    for path in ("/", "/health", "/ready", "/page/none.js"):
        client.get(path)
    assert not (state.audit / "audit.jsonl").exists()


def test_queries_can_be_hashed(serve, trail, state):
    client = serve(audit_queries="hash")
    for query in ("lasix", "lasix", "gout"):
        client.search(query, filters={"patient": "A"})
    first, second, third = (entry["query"]["query"] for entry in trail())
    assert first == second != third
    assert first.startswith("hmac-sha256:")
    assert "lasix" not in (state.audit / "audit.jsonl").read_text()
    assert trail()[0]["filters"] == {"patient": "A"}
    assert (state.audit / "key").stat().st_mode & 0o077 == 0


def test_the_line_is_on_disk_before_the_reply(client, trail, monkeypatch):
    events = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (events.append("synced"), fsync(descriptor)))
    original = client.server.audit.append

    def append(lines):
        original(lines)
        events.append("written")

    client.server.audit.append = append
    client.search("lasix")
    assert events[0] == "synced"
    assert "written" in events
    assert len(trail()) == 1


def test_an_unexpected_error_in_the_trail_blocks_no_request(client, trail, monkeypatch):
    def fail(*_):
        raise ValueError("something else")

    with monkeypatch.context() as broken:
        broken.setattr(Audit, "append", fail)
        problem(client.get("/api/me"), 503)
    assert client.get("/api/me").status_code == 200
    assert len(trail()) == 1


def test_a_failed_write_of_the_trail_stops_the_reply(client, trail, monkeypatch):
    def full(lines):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(client.server.audit, "append", full)
    for reply in (client.post("/api/search", json={"query": "lasix"}), client.get("/api/documents/a1")):
        error = problem(reply, 503)
        assert "audit trail" in error["detail"]
        assert "Lasix" not in reply.text
        assert reply.headers["retry-after"]
        assert reply.headers["x-content-type-options"] == "nosniff"
    monkeypatch.undo()
    assert client.search("lasix")["hits"]
    assert "capr_audit_failures_total 2" in client.get("/metrics").text


def test_a_trail_that_cannot_be_written_is_an_error(folder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CaprError, match="cannot be written"):
        Audit(tmp_path / "file")


@pytest.mark.parametrize("size", [1, 500, 10**6])
def test_rotation_by_size_loses_nothing(tmp_path, size):
    audit = Audit(tmp_path / "audit", size=size, days=10**6)
    for number in range(50):
        audit.append(line(number))
    audit.close()
    assert [entry["number"] for entry in entries(tmp_path / "audit")] == list(range(50))
    files = list((tmp_path / "audit").glob("audit-*.jsonl"))
    assert len(files) == {1: 49, 10**6: 0}.get(size, len(files))
    assert all(file.stat().st_size < size + 200 for file in files)


@pytest.mark.parametrize("length", [1, 10_000])
def test_rotation_by_age(tmp_path, length):
    audit = Audit(tmp_path / "audit", days=1)
    audit.append(line(0, documents=["x" * length]))  # an old entry
    audit.append(line(1))
    audit.close()
    assert len(list((tmp_path / "audit").glob("audit-*.jsonl"))) == 1
    assert [entry["number"] for entry in entries(tmp_path / "audit")] == [0, 1]


WRITER = """
import sys
from pathlib import Path
from capr.serve.audit import Audit
trail = Audit(Path(sys.argv[1]), size=4000)
for number in range(200):
    trail.append(b'{"time": "2024", "who": "%s", "number": %d}\\n' % (sys.argv[2].encode(), number))
"""


def test_several_processes_write_at_once(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "audit"), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    written = list(entries(tmp_path / "audit"))
    assert len(written) == 600
    for name in "abc":
        assert [entry["number"] for entry in written if entry["who"] == name] == list(range(200))
    assert len(list((tmp_path / "audit").glob("audit-*.jsonl"))) > 3


def test_an_incomplete_line_damages_no_other(tmp_path):
    audit = Audit(tmp_path / "audit", days=10**6)
    audit.append(line(0))
    with (tmp_path / "audit" / "audit.jsonl").open("ab") as file:
        file.write(b'{"time": "20')  # a process was killed
    audit.append(line(1))
    audit.close()
    first, torn, second = entries(tmp_path / "audit", document="")
    assert (first["number"], second["number"]) == (0, 1)
    assert torn == {"damaged": "audit.jsonl, line 2"}


def test_concurrent_requests_share_a_sync(tmp_path, monkeypatch):
    count = 0
    original = os.fsync

    def fsync(descriptor):
        nonlocal count
        count += 1
        time.sleep(0.01)
        original(descriptor)

    async def write():
        audit = Audit(tmp_path / "audit")
        monkeypatch.setattr(os, "fsync", fsync)
        await asyncio.gather(*(audit.write(audit.line(AuditRecord(), time="2024", number=i)) for i in range(100)))
        monkeypatch.undo()
        audit.close()

    asyncio.run(write())
    assert len(list(entries(tmp_path / "audit"))) == 100
    assert count < 20


def test_the_audit_command(client, tokens, folder, capsys, monkeypatch):
    anna, bert = (client.with_token(tokens(name=name)) for name in ("anna", "bert"))
    anna.get("/api/documents/a1")
    bert.search("lasix")
    bert.get("/api/documents/a1")

    def audit(*arguments):
        monkeypatch.setattr(sys, "argv", ["capr", "audit", str(folder), *arguments])
        with pytest.raises(SystemExit):
            app()
        return capsys.readouterr().out.splitlines()

    assert len(audit()) == 3
    assert "anna  GET /api/documents/{id:path}  200  -> a1" in audit()[0]
    assert [json.loads(line)["who"] for line in audit("--json", "--document", "a1")] == ["anna", "bert"]
    assert len(audit("--who", "bert")) == 2
    assert audit("--since", "2999") == []
    bert.get("/api/documents/none")
    client.with_token("capr_wrong").get("/api/stats")
    assert audit()[3].endswith("bert  GET /api/documents/{id:path}  404  requested none")
    assert audit()[4].endswith("nobody  GET /api/stats  401")
    assert audit("--document", "none") == []
    assert len(audit("--since", "2020-01-01")) == 5
    assert len(audit("--who", "nobody")) == 1


def test_the_audit_command_reports_a_caller_without_a_token(client, tokens, folder, run):
    client.with_token(tokens(name="Dr. Ames")).get("/api/me")
    tokens(name="Dr. Bell")
    code, output, errors = run("audit", folder, "--who", "Dr Ames")
    fact = "No token has the name or id 'Dr Ames'. Did you mean 'Dr. Ames'? capr token list shows all.\n"
    assert (code, output, errors) == (1, "", fact)
    trail = folder.with_name(f"{folder.name}.state") / "audit"
    for arguments in ((), ("--audit", trail)):
        code, _, errors = run("audit", folder, "--who", "1f3a9c02", *arguments)
        assert (code, errors) == (1, "No token has the name or id '1f3a9c02'. capr token list shows all.\n")
    for who in ("Dr. Bell", "local", "nobody"):
        code, _, errors = run("audit", folder, "--who", who)
        assert (code, errors) == (0, f"No entries for --who {who}.\n")


def test_a_missing_trail_is_an_error(tmp_path):
    with pytest.raises(CaprError, match="no audit trail"):
        list(entries(tmp_path / "none"))


@pytest.mark.parametrize("since", ["18/03/2024", "yesterday", "2024-13", "2024-03-18T25:00", "2024-3-1"])
def test_a_time_that_is_not_a_date_is_an_error(tmp_path, run, folder, client, since):
    client.get("/api/me")
    with pytest.raises(CaprError, match=rf"'{since}' is not a date\. Fix: write 2024-03-18 or 2024-03-18T09:30\."):
        list(entries(tmp_path, since=since))
    code, _, errors = run("audit", folder, "--since", since)
    assert (code, "is not a date" in errors) == (2, True)


@pytest.mark.parametrize(
    ("since", "count"),
    [
        ("", 3),
        ("2024", 2),
        ("2024-03", 2),
        ("2024-03-18", 2),
        ("2024-03-18T09:30", 2),
        ("2024-03-18 09:30:01", 1),
        ("2024-03-18T09:30:00Z", 2),
        ("2024-03-18T11:30+02:00", 2),
        ("2024-03-18T11:31+02:00", 1),
    ],
)
def test_entries_since_a_time(tmp_path, since, count):
    audit = Audit(tmp_path / "audit", days=10**6)
    for moment in ("2023-12-31T23:59:59.999+00:00", "2024-03-18T09:30:00.123+00:00", "2024-03-19T00:00:00.000+00:00"):
        audit.append(audit.line(AuditRecord(), time=moment))
    audit.close()
    assert len(list(entries(tmp_path / "audit", since=since))) == count


def test_a_trail_without_matching_entries_says_so(run, folder, client):
    client.get("/api/documents")
    output = ("audit", folder, "--who", "nobody", "--document", "zz")
    assert run(*output) == (0, "", "No entries for --who nobody, --document zz.\n")
    assert run(*output, "--json") == (0, "", "No entries for --who nobody, --document zz.\n")
    assert run("audit", folder, "--since", "2099") == (0, "", "No entries for --since 2099.\n")
