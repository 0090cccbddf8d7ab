"""A generative reader, against a real server on this machine."""

import json
import socket
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import capr
from capr.documents import CaprError, Document, Span
from capr.search import GenerativeReader, asking
from capr.search.generative import RefusedError, answer_in, located
from capr.search.paragraphs import stretches

_spec = spec_from_file_location("fake_reader", Path(__file__).parent / "fake_reader.py")
fake_reader = module_from_spec(_spec)
_spec.loader.exec_module(fake_reader)
FakeReader = fake_reader.FakeReader

NOTE = Document(
    "n1",
    "HISTORY: Lasix was 20 mg at first.\n\nMEDICATIONS:\nLasix 40\nmg daily.\n\nPLAN: Lasix stays. 40 mg it is.\n\nDIET: Lasix.",
)


class Server:
    """Answers every chat in the way that a test says."""

    def __init__(self):
        self.say, self.status, self.wait, self.raw, self.headers = '{"answer": "?"}', 200, 0.0, None, {}
        self.asked, self.keys, self.paths = [], [], []
        self.leave = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.keys.append(self.headers["Authorization"])
                outer.paths.append(self.path)
                outer.leave.wait(outer.wait)
                said = outer.say(body["messages"][1]["content"]) if callable(outer.say) else outer.say
                reply = {"choices": [{"message": {"role": "assistant", "content": said}}]}
                data = json.dumps(reply).encode() if outer.raw is None else outer.raw
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *given):
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request, address):  # who asked has gone
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self.leave.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """Each passage is read by itself, so that there are several to choose from."""
    monkeypatch.setattr(asking, "stretches", partial(stretches, length=1))


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


def ask(server, question="Lasix", **options):
    url = server if isinstance(server, str) else server.url
    options = {"seconds": 10.0, **options}
    return capr.ask(NOTE, question, reader=GenerativeReader(FakeReader(), url, "tiny", **options), top=5)


def places(answers):
    return [(answer.text, answer.headings) for answer in answers]


def test_a_good_reply_is_located_in_the_paragraph(server):
    server.say = lambda asked: json.dumps({"answer": "40 mg" if "40" in asked else "20 mg"})
    answers = ask(server)
    assert places(answers)[:2] == [("20 mg", ("HISTORY",)), ("40\nmg", ("MEDICATIONS",))]
    assert all(NOTE[answer.span] == answer.text for answer in answers)
    assert (answers.found, answers[0].confidence) == (True, 0.9)
    assert [place.headings for place in answers[1].places] == [("PLAN",)]
    assert places(answers)[2] == ("Lasix", ("DIET",))  # it reads three paragraphs; the fourth is as it was
    assert answers.reader == "tiny and fake"
    assert answers.notices == (f"tiny at {server.url}/chat/completions was asked to read 3 paragraphs",)


def test_what_is_sent(server, monkeypatch):
    monkeypatch.setenv("CAPR_GENERATIVE_KEY", "secret")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    ask(server, paragraphs=1)
    (body,) = server.asked
    assert (body["model"], body["temperature"], server.paths) == ("tiny", 0, ["/v1/chat/completions"])
    system, user = body["messages"]
    assert '{"answer": "?"}' in system["content"]
    assert user["content"] == "Question: Lasix\n\nParagraph:\nHISTORY: Lasix was 20 mg at first."
    assert server.keys == ["Bearer secret"]


def test_without_a_key_none_is_sent(server, monkeypatch):
    monkeypatch.delenv("CAPR_GENERATIVE_KEY", raising=False)
    ask(server, paragraphs=1)
    ask(server, paragraphs=1, key="mine")
    assert server.keys == [None, "Bearer mine"]


@pytest.mark.parametrize(
    "reply",
    [
        'The dose is: {"answer": "20 mg"} I hope that helps {you}.',
        '```json\n{"answer": "20 mg"}\n```',
        '<think>{"answer": "Lasix"} or not?</think>{"answer": "20 mg"}',
        '{"result": {"answer": "20\\nmg "}}',
    ],
)
def test_json_is_found_in_prose(server, reply):
    server.say = reply
    assert places(ask(server, paragraphs=1))[0] == ("20 mg", ("HISTORY",))


@pytest.mark.parametrize("reply", ['{"answer": "?"}', '{"answer": ""}', '{"answer": null}'])
def test_where_the_model_finds_nothing_there_is_nothing(server, reply):
    server.say = reply
    answers = ask(server, paragraphs=9)
    assert (answers.found, len(answers), len(server.asked)) == (False, 0, 4)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ('{"answer": "80 mg"}', "does not stand in the paragraph word for word"),
        ('{"answer": "0 mg"}', "does not stand in the paragraph word for word"),
        ("20 mg", "has no JSON object"),
        ('{"answer": "20 mg"', "has no JSON object"),
        ('{"dose": "20 mg"}', "has no JSON object"),
        (None, "it says nothing"),
    ],
)
def test_what_cannot_be_used_is_refused_and_the_extractive_answer_stays(server, reply, told):
    server.say = reply
    answers = ask(server, paragraphs=1)
    assert (answers.found, answers[0].text, len(answers[0].places)) == (True, "Lasix", 3)
    assert answers.notices[1].startswith("a reply of tiny was refused: ")
    assert told in answers.notices[1]
    assert answers.notices[1].endswith("The extractive reader answers instead.")


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b'{"choices": []}', b"\xff\xfe", b"[" * 100_000])
def test_a_reply_that_is_no_chat_is_refused(server, raw):
    server.raw = raw
    answers = ask(server, paragraphs=1)
    assert answers[0].text == "Lasix"
    assert "it is no chat completion" in answers.notices[1]


@pytest.mark.parametrize(
    ("status", "headers"), [(500, {}), (404, {}), (401, {}), (307, {"Location": "http://127.0.0.1:9/"})]
)
def test_an_error_of_the_server_is_told_and_it_is_not_asked_again(server, status, headers):
    server.status, server.headers = status, headers
    answers = ask(server)
    assert (answers[0].text, len(server.asked)) == ("Lasix", 1)
    assert f"answers {status}" in answers.notices[1]
    assert "Fix: " in answers.notices[1]
    assert answers.notices[1].endswith("The extractive reader answers instead.")


def test_a_server_that_hangs_is_not_waited_for(server):
    server.wait = 30
    begun = time.monotonic()
    answers = ask(server, seconds=0.2)
    assert time.monotonic() - begun < 10
    assert answers[0].text == "Lasix"
    assert "has not answered in 0.2 seconds. Fix: " in answers.notices[1]


def test_a_server_that_is_dead():
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        answers = ask(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
    assert (answers[0].text, answers.reader) == ("Lasix", "fake")
    assert "does not answer (" in answers.notices[1]
    assert "Fix: check that the server runs." in answers.notices[1]


def test_a_reply_without_end_is_cut(server):
    server.raw = b"x" * 3_000_000
    answers = ask(server, paragraphs=1)
    assert "its reply is longer than 1,000,000 bytes" in answers.notices[1]


def test_what_the_model_finds_counts_though_the_extractive_reader_is_unsure(server):
    server.say = '{"answer": "20 mg"}'
    reader = GenerativeReader(FakeReader(0.1), server.url, "tiny", paragraphs=1)
    answers = capr.ask(NOTE, "Lasix", reader=reader)
    assert (answers.found, answers[0].text, answers[0].confidence) == (True, "20 mg", 0.5)
    assert answers.reader == "tiny and fake"
    assert reader.read("Lasix", [NOTE.text])[0][0].confidence == 0.5
    higher = GenerativeReader(FakeReader(0.1), server.url, "tiny", paragraphs=1, threshold=0.8)
    assert capr.ask(NOTE, "Lasix", reader=higher, threshold=0.8).found


def test_nothing_is_sent_of_what_is_too_long_or_empty(server):
    whole = Document("n", "Lasix" + "x" * 30_000)
    answers = capr.ask(whole, "Lasix", reader=GenerativeReader(FakeReader(), server.url, "tiny"))
    assert answers.found
    assert "too long for tiny" in answers.notices[0]
    capr.ask(Document("n", ""), "Lasix", reader=GenerativeReader(FakeReader(), server.url, "tiny"))
    assert server.asked == []


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://a/v1", "file:///etc/passwd", "http://"])
def test_what_is_no_address(url):
    with pytest.raises(CaprError, match=r"is no address of a server\. Fix: "):
        GenerativeReader(FakeReader(), url, "tiny")
    with pytest.raises(CaprError, match=r"has no name\. Fix: "):
        GenerativeReader(FakeReader(), "http://127.0.0.1:1/v1/chat/completions", " ")


@pytest.mark.parametrize(
    ("answer", "paragraph", "near", "found"),
    [
        ("5 mg", "2.5 mg, 15 mg, 5 mg", (0, 1), (15, 19)),
        ("5", "5.5 or 5,0 or 5.", (0, 1), (14, 15)),
        ("40 mg", "40 mg; 40 mg; 40 mg", (8, 9), (7, 12)),
        ("a  b", "a\n\tb", (0, 1), (0, 4)),
        ("(x)", "f(x)", (0, 1), (1, 4)),
        ("µg é", "5 µg é", (0, 1), (2, 6)),
    ],
)
def test_where_an_answer_stands(answer, paragraph, near, found):
    assert located(answer, paragraph, Span(*near)) == Span(*found)


def test_words_are_compared_exactly():
    for answer in ("Mg", "4 mg", "mg 40"):
        with pytest.raises(RefusedError):
            located(answer, "40 mg", Span(0, 1))


def test_numbers_are_texts():
    assert answer_in('{"answer": 1.50}') == "1.50"
    assert answer_in('{"answer": 7}') == "7"
