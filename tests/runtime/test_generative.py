"""Tests of the generative reader, with a real HTTP server on this computer."""

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
from capr.runtime.generative import GenerativeReader, UnusableReplyError, answer_in, located
from capr.search import answering
from capr.search.paragraphs import join_passages

_spec = spec_from_file_location("fake_reader", Path(__file__).parents[1] / "search" / "fake_reader.py")
fake_reader = module_from_spec(_spec)
_spec.loader.exec_module(fake_reader)
FakeReader = fake_reader.FakeReader

NOTE = Document(
    "n1",
    "HISTORY: Lasix was 20 mg at first.\n\nMEDICATIONS:\nLasix 40\nmg daily.\n\nPLAN: Lasix stays. 40 mg it is.\n\nDIET: Lasix.",
)


class Server:
    """A server whose replies a test sets: `content` is the model's message or a function of the prompt."""

    def __init__(self):
        self.content, self.status, self.wait, self.raw, self.headers = '{"answer": "?"}', 200, 0.0, None, {}
        self.bodies, self.keys, self.paths = [], [], []
        self.closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.bodies.append(body)
                outer.keys.append(self.headers["Authorization"])
                outer.paths.append(self.path)
                outer.closing.wait(outer.wait)
                content = outer.content(body["messages"][1]["content"]) if callable(outer.content) else outer.content
                reply = {"choices": [{"message": {"role": "assistant", "content": content}}]}
                data = json.dumps(reply).encode() if outer.raw is None else outer.raw
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request, address):  # the client has disconnected
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """Make every passage a paragraph, so that the reader has several to choose from."""
    monkeypatch.setattr(answering, "join_passages", partial(join_passages, length=1))


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


def ask(server, question="Lasix", **options):
    url = server if isinstance(server, str) else server.url
    options = {"seconds": 10.0, **options}
    return capr.ask(NOTE, question, reader=GenerativeReader(FakeReader(), url, "tiny", **options), k=5)


def texts_and_headings(answers):
    return [(answer.text, answer.headings) for answer in answers]


def test_a_good_reply_is_located_in_the_paragraph(server):
    server.content = lambda prompt: json.dumps({"answer": "40 mg" if "40" in prompt else "20 mg"})
    answers = ask(server)
    assert texts_and_headings(answers)[:2] == [("20 mg", ("HISTORY",)), ("40\nmg", ("MEDICATIONS",))]
    assert all(NOTE[answer.span] == answer.text for answer in answers)
    assert (answers.answered, answers[0].confidence) == (True, 0.9)
    assert [place.headings for place in answers[1].places] == [("PLAN",)]
    assert texts_and_headings(answers)[2] == (
        "Lasix",
        ("DIET",),
    )  # the model reads three paragraphs; the extractive answer of the fourth stays
    assert answers.reader == "tiny and fake"
    assert answers.notices == (f"capr sent 3 paragraphs to tiny at {server.url}/chat/completions",)


def test_the_request_has_the_prompt_and_the_key(server, monkeypatch):
    monkeypatch.setenv("CAPR_GENERATIVE_KEY", "secret")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    ask(server, paragraphs=1)
    (body,) = server.bodies
    assert (body["model"], body["temperature"], server.paths) == ("tiny", 0, ["/v1/chat/completions"])
    system, user = body["messages"]
    assert '{"answer": "?"}' in system["content"]
    assert user["content"] == "Question: Lasix\n\nParagraph:\nHISTORY: Lasix was 20 mg at first."
    assert server.keys == ["Bearer secret"]


def test_without_a_key_the_request_has_no_authorization(server, monkeypatch):
    monkeypatch.delenv("CAPR_GENERATIVE_KEY", raising=False)
    ask(server, paragraphs=1)
    ask(server, paragraphs=1, key="secret")
    assert server.keys == [None, "Bearer secret"]


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
    server.content = reply
    assert texts_and_headings(ask(server, paragraphs=1))[0] == ("20 mg", ("HISTORY",))


@pytest.mark.parametrize("reply", ['{"answer": "?"}', '{"answer": ""}', '{"answer": null}'])
def test_a_paragraph_without_an_answer_of_the_model_has_no_answer(server, reply):
    server.content = reply
    answers = ask(server, paragraphs=9)
    assert (answers.answered, len(answers), len(server.bodies)) == (False, 0, 4)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"answer": "80 mg"}', "is not in the paragraph word for word"),
        ('{"answer": "0 mg"}', "is not in the paragraph word for word"),
        ("20 mg", "has no JSON object"),
        ('{"answer": "20 mg"', "has no JSON object"),
        ('{"dose": "20 mg"}', "has no JSON object"),
        (None, "it is empty"),
    ],
)
def test_an_unusable_reply_is_refused_and_the_extractive_answer_stays(server, reply, reason):
    server.content = reply
    answers = ask(server, paragraphs=1)
    assert (answers.answered, answers[0].text, len(answers[0].places)) == (True, "Lasix", 3)
    assert answers.notices[1].startswith("capr rejected a reply from tiny: ")
    assert reason in answers.notices[1]
    assert answers.notices[1].endswith("The extractive reader answers instead.")


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b'{"choices": []}', b"\xff\xfe", b"[" * 100_000])
def test_a_reply_that_is_not_a_chat_is_refused(server, raw):
    server.raw = raw
    answers = ask(server, paragraphs=1)
    assert answers[0].text == "Lasix"
    assert "it is not a chat completion" in answers.notices[1]


@pytest.mark.parametrize(
    ("status", "headers"), [(500, {}), (404, {}), (401, {}), (307, {"Location": "http://127.0.0.1:9/"})]
)
def test_an_error_of_the_server_becomes_a_notice_and_ends_the_requests(server, status, headers):
    server.status, server.headers = status, headers
    answers = ask(server)
    assert (answers[0].text, len(server.bodies)) == ("Lasix", 1)
    assert f"answers {status}" in answers.notices[1]
    assert "Fix: " in answers.notices[1]
    assert answers.notices[1].endswith("The extractive reader answers instead.")


def test_a_server_that_hangs_runs_into_the_timeout(server):
    server.wait = 30
    start = time.monotonic()
    answers = ask(server, seconds=0.2)
    assert time.monotonic() - start < 10
    assert answers[0].text == "Lasix"
    assert "has not answered in 0.2 seconds. Fix: " in answers.notices[1]


def test_a_server_that_does_not_run_becomes_a_notice():
    with socket.socket() as closed:  # bound, but not listening
        closed.bind(("127.0.0.1", 0))
        answers = ask(f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
    assert (answers[0].text, answers.reader) == ("Lasix", "fake")
    assert "does not answer (" in answers.notices[1]
    assert "Fix: check that the server runs." in answers.notices[1]


def test_an_endless_reply_is_refused(server):
    server.raw = b"x" * 3_000_000
    answers = ask(server, paragraphs=1)
    assert "its reply is longer than 1,000,000 bytes" in answers.notices[1]


def test_the_answer_of_the_model_has_at_least_the_threshold_as_confidence(server):
    server.content = '{"answer": "20 mg"}'
    reader = GenerativeReader(FakeReader(0.1), server.url, "tiny", paragraphs=1)
    answers = capr.ask(NOTE, "Lasix", reader=reader)
    assert (answers.answered, answers[0].text, answers[0].confidence) == (True, "20 mg", 0.5)
    assert answers.reader == "tiny and fake"
    assert reader.read("Lasix", [NOTE.text])[0][0].confidence == 0.5
    higher = GenerativeReader(FakeReader(0.1), server.url, "tiny", paragraphs=1, threshold=0.8)
    assert capr.ask(NOTE, "Lasix", reader=higher, threshold=0.8).answered


def test_too_long_and_empty_paragraphs_are_not_sent(server):
    long = Document("n", "Lasix" + "x" * 30_000)
    answers = capr.ask(long, "Lasix", reader=GenerativeReader(FakeReader(), server.url, "tiny"))
    assert answers.answered
    assert "too long for tiny" in answers.notices[0]
    capr.ask(Document("n", ""), "Lasix", reader=GenerativeReader(FakeReader(), server.url, "tiny"))
    assert server.bodies == []


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://a/v1", "file:///etc/passwd", "http://"])
def test_an_invalid_address_is_an_error(url):
    with pytest.raises(CaprError, match=r"is not the address of a server\. Fix: "):
        GenerativeReader(FakeReader(), url, "tiny")
    with pytest.raises(CaprError, match=r"has no name\. Fix: "):
        GenerativeReader(FakeReader(), "http://127.0.0.1:1/v1/chat/completions", " ")


@pytest.mark.parametrize(
    ("answer", "paragraph", "near", "expected"),
    [
        ("5 mg", "2.5 mg, 15 mg, 5 mg", (0, 1), (15, 19)),
        ("5", "5.5 or 5,0 or 5.", (0, 1), (14, 15)),
        ("40 mg", "40 mg; 40 mg; 40 mg", (8, 9), (7, 12)),
        ("a  b", "a\n\tb", (0, 1), (0, 4)),
        ("(x)", "f(x)", (0, 1), (1, 4)),
        ("µg é", "5 µg é", (0, 1), (2, 6)),
    ],
)
def test_an_answer_is_located_in_whole_words_nearest_to_a_span(answer, paragraph, near, expected):
    assert located(answer, paragraph, Span(*near)) == Span(*expected)


def test_words_are_compared_exactly():
    for answer in ("Mg", "4 mg", "mg 40"):
        with pytest.raises(UnusableReplyError):
            located(answer, "40 mg", Span(0, 1))


def test_numbers_become_texts():
    assert answer_in('{"answer": 1.50}') == "1.50"
    assert answer_in('{"answer": 7}') == "7"
