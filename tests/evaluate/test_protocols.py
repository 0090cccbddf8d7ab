"""A protocol is one file and one line: its class becomes a command."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
import typer
from typer.testing import CliRunner

from capr.cli.evaluate import command
from capr.documents import Document
from capr.evaluate.protocol import CandidateProtocol, LibraryProtocol, ReadDocuments
from capr.evaluate.protocols import PROTOCOLS, protocol
from capr.evaluate.task import Task, TaskQuery
from capr.models.family import option


@dataclass(frozen=True, kw_only=True)
class Titles(CandidateProtocol):
    """The title of each document is the query for it.

    Example: capr evaluate titles --data notes/ --model bm25
    """

    forms: ClassVar[Sequence[str]] = ("question",)

    least: int = option(0, "Minimum characters of a title.", least=0)

    def task(self, read: ReadDocuments) -> Task:
        documents: list[Document] = list(read(self.data, None, ()))
        queries = [
            TaskQuery(document.id, "", "", document.title, frozenset([document.id]))
            for document in documents
            if len(document.title) >= self.least
        ]
        return Task("titles", {document.id: document.text for document in documents}, queries)


def run(kind, *arguments):
    app = typer.Typer()
    app.command()(command(kind))
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def articles(tmp_path):
    (tmp_path / "gout.md").write_text("# Gout\n\nGout is a form of arthritis.\n")
    (tmp_path / "hives.md").write_text("# Hives\n\nHives are itchy.\n")
    return tmp_path


def test_a_protocol_becomes_a_command(articles):
    result = run(Titles, "--data", articles, "--model", "bm25", "--json", "--qrels", articles / "qrels")
    assert result.exit_code == 0, result.output
    assert '"protocol": "titles"' in result.output
    assert '"R@1": 1.0' in result.output
    assert len((articles / "qrels").read_text().splitlines()) == 2
    shorter = run(Titles, "--data", articles, "--model", "bm25", "--least", 5, "--qrels", articles / "qrels")
    assert "1 query (question)" in shorter.output
    assert len((articles / "qrels").read_text().splitlines()) == 1


def test_a_protocol_has_only_its_own_options(articles):
    text = run(Titles, "--help").output
    assert "The title of each document is the query for it." in text
    assert "--least" in text
    assert "--limit" in text
    assert "--queries" not in text  # there is one form
    assert "--opening" not in text
    assert run(Titles, "--data", articles, "--model", "bm25", "--opening").exit_code == 2


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_is_of_one_of_the_two_kinds(name):
    assert issubclass(protocol(name), CandidateProtocol | LibraryProtocol)
    assert f"Example: capr evaluate {name} " in protocol(name).__doc__
