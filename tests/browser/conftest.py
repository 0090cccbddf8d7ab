"""Fixtures of the page tests: a sample library, servers and a browser.

The tests need Chromium and are slow: `make test-browser` runs them, and `make test` does not. `CAPR_CHROMIUM` names the
browser, and `CAPR_BROWSER_LIBRARY` an existing library of the samples, which saves time.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

CHROMIUM = os.environ.get("CAPR_CHROMIUM", "")
collect_ignore_glob = [] if CHROMIUM else ["*.py"]
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)
MAX_WAIT = 30  # seconds for a server to start and for the page to react, even on a busy machine

HOSTILE = """\
ASSESSMENT: 😀 Acute gout of the left knee, <script>document.title = "taken"</script> treated with colchicine.
<img src=x onerror="document.title = 'taken'"> 🩺🩺 Denies podagra. Father had hemochromatosis.

PLAN: 👩‍⚕️ Continue allopurinol 300 mg daily. <b>Recheck</b> uric acid.
"""


def run(*arguments):
    """Run a command of capr with the built-in models, and return its output."""
    process = subprocess.run(
        [sys.executable, "-m", "capr", *map(str, arguments)], env=_environment(), capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def _environment():
    return {name: value for name, value in os.environ.items() if name != "CAPR_WEIGHTS"}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Return a library of the samples and a note with markup."""
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "library"
    if os.environ.get("CAPR_BROWSER_LIBRARY"):
        shutil.copytree(os.environ["CAPR_BROWSER_LIBRARY"], path)
    else:
        run("samples", folder / "samples")
        run("index", path, folder / "samples")
    note = {"id": "hostile/<b>note</b> ?#%", "text": HOSTILE, "title": "<script>alert(1)</script> 😀 Gout clinic"}
    note |= {"patient": "p99 <i>", "date": "2026-02-03", "type": "Clinic letter"}
    (folder / "hostile.jsonl").write_text(json.dumps(note), "utf-8")
    run("index", path, folder / "hostile.jsonl")
    return path


class Served:
    """A server of capr on this machine, which the fixtures stop."""

    def __init__(self, library, *options, port=None):
        self.library, self.options = library, options
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.log = library.parent / f"serve-{self.port}.log"
        self.start()

    def start(self):
        command = [sys.executable, "-m", "capr", "serve", str(self.library), "--port", str(self.port), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=_environment(), stdout=log, stderr=log)
        deadline = time.monotonic() + 2 * MAX_WAIT
        while not self._ready():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def _ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}ready", timeout=5) as reply:
                return reply.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def stop(self, signal_number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
            try:
                self.process.wait(MAX_WAIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(MAX_WAIT)


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="session")
def served(library):
    server = Served(library)
    yield server
    server.stop()


@pytest.fixture
def another(library, tmp_path):
    """Return a function that starts another server on a copy of the library."""
    servers = []

    def start(*options, prepare=lambda copy: None, **more):
        copy = tmp_path / f"library-{len(servers)}"
        shutil.copytree(library, copy)
        prepare(copy)
        servers.append(Served(copy, *options, **more))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def closed(another):
    """Return a server that needs a token, and the token of a reader."""
    from capr.serve.state import open_state
    from capr.serve.tokens import TokenStore

    secrets = []
    server = another(prepare=lambda copy: secrets.append(TokenStore(open_state(copy).tokens).create("anna")[0]))
    return server, secrets[0]


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=MAX_WAIT * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def window(browser):
    """Return a function that opens windows: `window(url, fragment, **options)`.

    The test fails if a page has an error, violates its security policy or requests another site.
    """
    contexts, violations = [], []

    def open_window(url, fragment="", **options):
        settings = {"viewport": {"width": 1360, "height": 900}, "reduced_motion": "reduce", **options}
        context = browser.new_context(**settings)
        contexts.append(context)
        context.set_default_timeout(MAX_WAIT * 1000)
        page = context.new_page()

        def check_message(message):
            if "Content Security Policy" in message.text or "Refused to" in message.text:
                violations.append(message.text)

        def check_request(request):
            if not request.url.startswith((url, "blob:", "about:", "data:")):
                violations.append(f"requested {request.url}")

        page.on("console", check_message)
        page.on("pageerror", lambda error: violations.append(str(error)))
        page.on("request", check_request)
        page.goto(f"{url}{fragment}")
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert violations == []


@pytest.fixture
def page(window, served):
    """Return the empty page."""
    return window(served.url)


@pytest.fixture
def at(window, served):
    """Return a function that opens the page at an address: `at("q=gout")`."""
    return lambda fragment, **options: window(served.url, f"#{fragment}", **options)
