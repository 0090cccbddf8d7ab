"""What the tests of the page share: a sample library, a server of their own, and a browser.

They need Chromium and are slow: `make test-browser` runs them, `make test` leaves them out. `CAPR_CHROMIUM` names the
browser, `CAPR_BROWSER_LIBRARY` a library of the samples that is there already.
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
PATIENCE = 30  # seconds for a server to start, and for the page to show something, on a machine that has much to do

HOSTILE = """\
ASSESSMENT: 😀 Acute gout of the left knee, <script>document.title = "taken"</script> treated with colchicine.
<img src=x onerror="document.title = 'taken'"> 🩺🩺 Denies podagra. Father had hemochromatosis.

PLAN: 👩‍⚕️ Continue allopurinol 300 mg daily. <b>Recheck</b> uric acid.
"""


def run(*arguments):
    """Runs a command of capr with the models that ship."""
    done = subprocess.run(
        [sys.executable, "-m", "capr", *map(str, arguments)], env=_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _environment():
    return {name: value for name, value in os.environ.items() if name != "CAPR_WEIGHTS"}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The samples, and a note that tries to be more than text."""
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
    """A server of capr on this machine, which ends with the test."""

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
        deadline = time.monotonic() + 2 * PATIENCE
        while not self._ready():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def _ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}ready", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(PATIENCE)


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="session")
def served(library):
    server = Served(library)
    yield server
    server.stop()


@pytest.fixture
def another(library, tmp_path):
    """Starts further servers, each on a copy of the library."""
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
    """A server that wants a token, and a token of a reader."""
    from capr.serve.tokens import Tokens

    made = []
    server = another(prepare=lambda copy: made.append(Tokens(copy).create("anna")[0]))
    return server, made[0]


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield opened
        opened.close()


@pytest.fixture
def window(browser):
    """Opens windows: `window(url, fragment, **options)`; in the end, looks for what no page may do."""
    contexts, wrong = [], []

    def opened(url, fragment="", **options):
        settings = {"viewport": {"width": 1360, "height": 900}, "reduced_motion": "reduce", **options}
        context = browser.new_context(**settings)
        contexts.append(context)
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()

        def heard(message):
            if "Content Security Policy" in message.text or "Refused to" in message.text:
                wrong.append(message.text)

        def asked(request):
            if not request.url.startswith((url, "blob:", "about:", "data:")):
                wrong.append(f"asked for {request.url}")

        page.on("console", heard)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", asked)
        page.goto(f"{url}{fragment}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def page(window, served):
    """The page as it is before anything was searched."""
    return window(served.url)


@pytest.fixture
def at(window, served):
    """The page at an address: `at("q=gout")`."""
    return lambda fragment, **options: window(served.url, f"#{fragment}", **options)
