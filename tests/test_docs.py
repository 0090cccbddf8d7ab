"""The documentation and the program agree: options, names, links, and what every example prints.

A page's `console` and `python` blocks run in order, in a folder of their own. Hidden comments prepare it:

    <!-- needs: library -->   `demo/` (the samples) and `library/` (their index) exist
    <!-- needs: server -->    and `capr serve library` answers at http://127.0.0.1:8000

`capr serve` in a block runs until the end of the page, so that later commands can use http://127.0.0.1:8000. The tests
skip a block after `<!-- not run: reason -->`.

`CAPR_UPDATE_DOCS=1 pytest tests/test_docs.py` writes what the commands print into the pages. Read the difference.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import typer

import capr
from capr.cli import typer_app
from capr.cli.old_options import OLD_OPTIONS
from capr.documents.formats import FORMATS

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
UPDATE = os.environ.get("CAPR_UPDATE_DOCS") == "1"
EXAMPLE = re.compile(r"^(<!-- not run: [^\n]+ -->\n+)?```(console|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ADDRESS = "127.0.0.1:8000"  # in the pages; the tests use any free port
GROUP = typer.main.get_command(typer_app).commands
COMMANDS = {
    f"{name} {part}".strip(): command
    for name, outer in GROUP.items()
    for part, command in getattr(outer, "commands", {"": outer}).items()
    if not command.hidden
}


def page(name: str) -> str:
    return (ROOT / name).read_text()


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = page("docs/reference/cli.md")
    assert f"## capr {name}\n" in text
    command = COMMANDS[name]
    assert "Example: capr" in command.help
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            for option in parameter.opts:
                assert f"`{option}" in text, option


def test_documented_options_exist():
    parameters = [parameter for command in COMMANDS.values() for parameter in command.params]
    known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "--version"}
    old = {name for renamed in OLD_OPTIONS.values() for name in renamed}
    for path in PAGES:
        mentioned = set(re.findall(r"capr [a-z][^\n`]*?(--[a-z-]+)", path.read_text()))
        assert mentioned <= (known | old if path.name == "CHANGELOG.md" else known), path


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_every_format_is_documented(format):
    assert f"| `{format.name}` |" in page("docs/reference/formats.md")
    assert (ROOT / "tests" / "documents" / f"test_{format.name}.py").exists()


@pytest.mark.parametrize("name", [name for name in capr.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name):
    assert f"`capr.{name}" in page("docs/reference/python.md")


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as mkdocs makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    slugs = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())
        number = 0
        while (numbered := f"{slug}_{number}" if number else slug) in slugs:
            number += 1
        slugs.add(numbered)
    return slugs


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_links_and_anchors_exist(path):
    for link in re.findall(r"\]\(([^)\s]+)[^)]*\)", path.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        target_path = path.parent / target if target else path
        assert target_path.exists(), link
        if anchor:
            assert anchor in anchors(target_path), link


def test_every_page_is_in_the_menu():
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r"- (?:[^:\n]+: )?(\S+\.md)$", page("mkdocs.yml"), re.MULTILINE)) == pages


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_lines_are_short_enough_to_review(path):
    text = re.sub(r"^```console\n.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)  # exact output
    lines = [line for line in text.splitlines() if len(line) >= 120]
    # A table row and a link cannot be wrapped.
    assert [line for line in lines if not re.match(r"\s*\||.*\]\(|<", line)] == []


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with the samples in `demo/` and their index in `library/`."""
    folder = tmp_path_factory.mktemp("docs")
    for command in ("capr samples demo", "capr index library demo"):
        subprocess.run(command, shell=True, cwd=folder, env=environment(), capture_output=True, check=True)
    return folder


class Shell:
    """Runs the commands of a page in a folder, and its servers at free ports."""

    def __init__(self, folder, stack):
        self.folder = folder
        self.stack = stack
        self.address = ADDRESS

    def run(self, command):
        """Return what a command prints, as the page shows it."""
        if command.startswith("capr serve "):
            return self.serve(command)
        result = subprocess.run(
            command.replace(ADDRESS, self.address),
            shell=True,
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return self.shown(result.stdout + result.stderr)

    def serve(self, command):
        """Start a server that runs until the end of the page, and return its first line."""
        server = subprocess.Popen(
            [*shlex.split(command), "--port", "0"],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.stack.enter_context(server)
        self.stack.callback(server.terminate)  # runs before the context waits for the end of the process
        line = server.stdout.readline()
        self.address = re.search(r"http://([\d.:]+)", line)[1]
        return self.shown(line)

    def shown(self, output):
        """Replace the address of the server, and strip the ends of the lines."""
        return "".join(f"{line.rstrip()}\n" for line in output.replace(self.address, ADDRESS).splitlines())


@contextmanager
def prepare(path, folder, request):
    """Prepare a folder as the hidden comments of a page ask, and yield a shell in it."""
    needs = re.findall(r"<!-- needs: (\w+) -->", path.read_text())
    if needs:
        shutil.copytree(request.getfixturevalue("library"), folder, dirs_exist_ok=True)
    with ExitStack() as stack:
        shell = Shell(folder, stack)
        if "server" in needs:
            shell.serve("capr serve library")
        yield shell


def environment():
    """Return the variables of a terminal with 80 columns, in which `capr` uses the built-in models."""
    variables = os.environ | {
        "COLUMNS": "80",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    variables.pop("CAPR_WEIGHTS", None)
    return variables


def run_block(block, shell):
    """Run the commands of a `console` block, and return the block with what they printed."""
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        output = shell.run(command)
        if UPDATE:
            block = block.replace(f"$ {command}\n{expected}", f"$ {command}\n{output}")
        else:
            assert output == expected, command
    return block


@pytest.mark.shipped
@pytest.mark.parametrize("path", [path for path in PAGES if EXAMPLE.search(path.read_text())], ids=page_name)
def test_examples_run_and_print_what_the_page_shows(path, tmp_path, request, monkeypatch):
    text = path.read_text()
    names = {}
    with prepare(path, tmp_path, request) as shell:
        for skipped, language, block in EXAMPLE.findall(text):
            if skipped:
                continue
            if language == "python":
                monkeypatch.chdir(tmp_path)
                exec(compile(block, page_name(path), "exec"), names)
            else:
                text = text.replace(block, run_block(block, shell))
    if UPDATE:
        path.write_text(text)
