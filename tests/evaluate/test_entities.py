"""Entity-level scores."""

import json

import pytest
from typer.testing import CliRunner

from capr.annotate.tagger import Tagger
from capr.cli import typer_app
from capr.evaluate.entities import evaluate, score


def test_only_whole_entities_count():
    assert score({(0, 2, "D"), (5, 6, "D")}, {(0, 2, "D"), (5, 7, "D")}).f1 == 0.5
    assert score(set(), set()) == (0.0, 0.0, 0.0)


@pytest.mark.data
def test_the_shipped_tagger_on_the_official_test_set(data):
    """Above the aim of 85 (BioBERT, five times its size: 89.7)."""
    found = evaluate(Tagger(guideline="NCBI-disease-IOB"), data / "ner" / "NCBI-disease-IOB" / "test.tsv")
    assert found["Disease"].f1 > 0.86


def test_the_command_prints_what_it_measures(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("Metformin\tB-Chemical\nhelps\tO\nagainst\tO\ndiabetes\tB-Disease\n.\tO\n")
    result = CliRunner().invoke(typer_app, ["evaluate", "entities", str(path), "--json"])
    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [(line["type"], line["measures"]["F1"]) for line in lines] == [("Chemical", 1.0), ("Disease", 1.0)]


def test_a_file_that_is_not_there_is_named(tmp_path):
    result = CliRunner().invoke(typer_app, ["evaluate", "entities", str(tmp_path / "none.tsv")])
    assert "is not a file. Fix: " in str(result.exception)
