"""The documentation and the program agree."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import capr
from capr.cli import typer_app
from capr.documents.formats import FORMATS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
GROUP = typer.main.get_command(typer_app).commands
COMMANDS = {
    f"{name} {part}".strip(): command
    for name, outer in GROUP.items()
    for part, command in getattr(outer, "commands", {"": outer}).items()
}


def page(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = page("docs/cli.md")
    assert f"## capr {name}\n" in text
    command = COMMANDS[name]
    assert "Example: capr" in command.help
    for parameter in command.params:
        if parameter.param_type_name == "option":
            for option in parameter.opts:
                assert f"`{option}" in text, option


def test_no_option_is_documented_that_does_not_exist():
    parameters = [parameter for command in COMMANDS.values() for parameter in command.params]
    known = {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "--version"}
    mentioned = {option for path in PAGES for option in re.findall(r"capr [a-z][^\n`]*?(--[a-z-]+)", path.read_text())}
    assert mentioned <= known


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_every_format_is_documented(format):
    assert f"| `{format.name}` |" in page("docs/formats.md")
    assert (ROOT / "tests" / "documents" / f"test_{format.name}.py").exists()


@pytest.mark.parametrize("name", [name for name in capr.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name):
    assert f"`capr.{name}" in page("docs/python.md")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.shipped
def test_the_examples_of_the_documents_print_what_they_say(tmp_path):
    environment = os.environ | {
        "COLUMNS": "80",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    examples = 0
    for block in re.findall(r"```console\n(.*?)```", page("README.md") + page("docs/cli.md"), re.DOTALL):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            result = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            printed = "".join(f"{line.rstrip()}\n" for line in (result.stdout + result.stderr).splitlines())
            assert printed == expected, command
            examples += 1
    assert examples >= 6


def test_the_python_of_the_documents_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-c", "from capr.cli import app; app()", "samples", "demo"], check=True)
    (tmp_path / "notes").symlink_to(tmp_path / "demo" / "notes")
    for name in ("README.md", "docs/python.md"):
        for block in re.findall(r"```python\n(.*?)```", page(name), re.DOTALL):
            exec(compile(block, name, "exec"), {})
