"""Entity-level scores."""

import json

import pytest
from typer.testing import CliRunner

from capr.cli import typer_app
from capr.evaluate.entities import evaluate, score
from capr.runtime.tagger import Tagger


def test_only_whole_entities_count():
    assert score({(0, 2, "D"), (5, 6, "D")}, {(0, 2, "D"), (5, 7, "D")}).f1 == 0.5
    assert score(set(), set()) == (0.0, 0.0, 0.0)


@pytest.mark.data
def test_the_built_in_tagger_on_the_official_test_set(data):
    """The aim is 85; BioBERT, which is five times as large, has 89.7."""
    scores = evaluate(Tagger(guideline="NCBI-disease-IOB"), data / "ner" / "NCBI-disease-IOB" / "test.tsv")
    assert scores["Disease"].f1 > 0.86


def test_the_command_prints_the_scores(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("Metformin\tB-Chemical\nhelps\tO\nagainst\tO\ndiabetes\tB-Disease\n.\tO\n")
    result = CliRunner().invoke(typer_app, ["evaluate", "entities", str(path), "--json"])
    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [(line["type"], line["measures"]["F1"]) for line in lines] == [("Chemical", 1.0), ("Disease", 1.0)]


def test_a_missing_file_is_reported(tmp_path):
    result = CliRunner().invoke(typer_app, ["evaluate", "entities", str(tmp_path / "none.tsv")])
    assert "is not a file. Fix: " in str(result.exception)
