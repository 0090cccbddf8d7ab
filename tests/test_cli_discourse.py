"""The commands that use the discourse vectors of sentences."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from commands import run

import capr
from capr.cli import scores as scores_command
from capr.cli.score_chart import BLOCKS, lines
from capr.documents import Document, Span
from capr.search import Curve, SentenceScore, models

_spec = spec_from_file_location("reference", Path(__file__).parent / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)

ARTICLES = ("gout.md", "asthma.md", "epilepsy.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with articles, the folder of a model, and a library made from both."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "articles").mkdir()
    (folder / "model").mkdir()
    for document in capr.samples.documents():
        if document.id in ARTICLES:
            (folder / "articles" / document.id).write_text(document.text)
    with pytest.MonkeyPatch.context() as patch:
        patch_model(patch)
        run(folder, "index", "library", "articles", "--discourse", "model")
    return folder


def patch_model(patch):
    """Load a fake discourse model from the folder."""
    fake_model = reference.WordDiscourse
    patch.setattr(models, "load_model", lambda folder, role: fake_model(half=96, folder=str(Path(folder).resolve())))


@pytest.fixture(autouse=True)
def _model(monkeypatch):
    patch_model(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")


def test_index_encodes_sentences_and_stats_and_verify_count_them(folder):
    stats = json.loads(run(folder, "stats", "library", "--json").stdout)
    assert stats["passages_with_sentences"] == stats["passages"]
    assert stats["discourse"]["name"] == "word-cdv"
    printed = run(folder, "stats", "library").stdout
    assert f"sentence vectors {stats['sentences']:,}" in " ".join(printed.split())
    assert "discourse: word-cdv (192 dimensions)" in printed
    assert f"{stats['sentences']:,} sentence vectors: no problems found" in run(folder, "verify", "library").stdout


def test_search_by_entity_and_aspect(folder):
    query = ("--entity", "gout", "--aspect", "treatment", "--mode", "cdv")
    results = json.loads(run(folder, "search", "library", *query, "--json").stdout)
    assert (results["mode"], results["notices"]) == ("cdv", [])
    assert (results["hits"][0]["document"], results["hits"][0]["headings"][-1]) == ("gout.md", "Treatment")
    printed = run(folder, "search", "library", *query, "--explain", "-k", "1").stdout
    assert "1 passage (cdv)" in printed
    assert "cdv rank 1, score " in printed


def test_search_reports_the_interpretation_of_a_question(folder):
    result = run(folder, "search", "library", "symptoms of asthma", "--mode", "cdv", "-k", "1")
    assert result.stdout.startswith("asthma: also")
    assert "1. asthma.md" in result.stdout
    assert "understood as the entity 'asthma' and the aspect 'symptoms'" in result.stderr


def test_search_reports_a_query_without_known_words(folder):
    result = run(folder, "search", "library", "--entity", "...", "--mode", "cdv", code=1)
    assert "0 passages (cdv)" in result.stdout
    notice = "Notice: the discourse model knows no word of the entity '...' of the query, so that nothing was found"
    assert notice in " ".join(result.stderr.split())


def test_encode_adds_vectors_of_sentences(folder, tmp_path):
    run(folder, "index", tmp_path / "library", "articles")
    printed = run(folder, "encode", tmp_path / "library", "--discourse", "model").stdout
    assert "sentences encoded by word-cdv; now " in printed
    assert "passage" not in printed
    again = run(folder, "encode", tmp_path / "library").stdout
    assert "0 sentences encoded by word-cdv" in again
    result = run(folder, "index", tmp_path / "library", "articles", "--discourse", "none")
    assert "have no vectors yet" not in result.stderr


def test_index_reports_sentences_without_vectors(folder, tmp_path):
    run(folder, "index", tmp_path / "library", "articles/gout.md", "--discourse", "model")
    result = run(folder, "index", tmp_path / "library", "articles", "--discourse", "none")
    assert f"have no vectors yet. Fix: capr encode {tmp_path / 'library'}." in result.stderr
    run(folder, "encode", tmp_path / "library")
    assert "have no vectors yet" not in run(folder, "index", tmp_path / "library", "articles").stderr


def test_encode_continues_with_the_sentences_of_a_library_without_an_encoder(folder, tmp_path):
    run(folder, "index", tmp_path / "library", "articles/gout.md", "--encoder", "none", "--discourse", "model")
    no_models = ("--encoder", "none", "--discourse", "none")
    run(folder, "index", tmp_path / "library", "articles/asthma.md", *no_models)
    printed = run(folder, "encode", tmp_path / "library").stdout
    assert "sentences encoded by word-cdv; now " in printed
    assert "passage" not in printed
    run(folder, "index", tmp_path / "library", "articles", *no_models)
    output = run(folder, "encode", tmp_path / "library", "--encoder", "none").stdout
    assert "sentences encoded by word-cdv; now " in output
    assert not output.startswith("0 ")
    assert "passage" not in output
    assert 'the discourse model is "none"' in error_of(folder, "encode", tmp_path / "library", "--discourse", "none")


def test_scores_prints_the_curves_and_the_best_sentences(folder):
    printed = run(folder, "scores", "library", "gout.md", "--entity", "gout", "--aspect", "treatment").stdout
    lines = printed.splitlines()
    assert lines[0].startswith("gout.md: ")
    assert lines[0].endswith(" sentences, entity 'gout', aspect 'treatment'")
    assert [line.split()[0] for line in lines if line[:1].isalpha()][1:5] == ["entity", "aspect", "both", "section"]
    assert max(map(len, lines)) <= 80
    assert "5 Treatment" in printed
    begin, end = map(int, printed.split("answer [")[1].split(")")[0].split(", "))
    text = (folder / "articles" / "gout.md").read_text()
    assert text.index("## Treatment") <= begin < end <= text.index("## Complications")
    span = printed.split("[", 1)[1].split(")")[0].split(", ")
    assert " ".join(text[int(span[0]) : int(span[1])].split())[:60] in printed


@pytest.mark.parametrize(("half", "words"), [("entity", "gout"), ("aspect", "treatment")])
def test_scores_of_an_entity_or_an_aspect(folder, half, words):
    command = ("scores", "library", "gout.md", f"--{half}", words)
    printed = run(folder, *command).stdout
    highest = max(sentence[half] for sentence in json.loads(run(folder, *command, "--json").stdout)["sentences"])
    assert f"█ = {highest:.2f}; no bar = 0 or less" in printed
    assert re.findall(r"^(\S+) \[", printed, re.MULTILINE)[:2] == ["answer", f"{highest:.2f}"]
    assert "(entity" not in printed
    assert "both" not in printed


@pytest.mark.parametrize(
    ("aspect", "scores", "message"),
    [
        ("", (-0.09, 0.0, -0.045), "no sentence in the document matches the query"),
        ("cause", (-0.09, -0.2, -0.145), "no sentence in the document matches the query"),
        ("cause", (0.2, -0.4, -0.1), "no sentence in the document matches the query"),
    ],
)
def test_scores_of_a_document_about_something_else(capsys, aspect, scores, message):
    points = tuple(SentenceScore(Span(position, position + 1), *scores) for position in range(9))
    scores_command._show(Curve(Document("a", "x" * 9), "gout", aspect, points))
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.endswith(message)
    assert ("no score is above 0" in printed) == (max(scores) <= 0)
    assert ("█ = 0.20" in printed) == (max(scores) > 0)
    assert "█ is -" not in printed
    assert "answer" not in printed


def test_scores_as_json(folder):
    command = ("scores", "library", "gout.md", "--entity", "gout")
    record = json.loads(run(folder, *command, "--json").stdout)
    text = (folder / "articles" / "gout.md").read_text()
    assert record.keys() == {"document", "by", "entity", "aspect", "answer", "headings", "sentences"}
    assert text[record["answer"]["begin"] : record["answer"]["end"]] == record["answer"]["text"]
    assert all(text[sentence["begin"] : sentence["end"]] == sentence["text"] for sentence in record["sentences"])
    assert "aspect  " not in run(folder, *command).stdout


@pytest.mark.parametrize(("name", "begins"), [("gout.png", b"\x89PNG"), ("gout.svg", b"<?xml")])
def test_scores_draws_a_plot(folder, tmp_path, name, begins):
    command = ("scores", "library", "gout.md", "--entity", "gout", "--aspect", "treatment", "--plot", tmp_path / name)
    assert "Saved the plot to " in run(folder, *command).stdout.replace("\n", "")
    assert (tmp_path / name).read_bytes().startswith(begins)


def error_of(folder, *arguments):
    return str(run(folder, *arguments, code=1).exception)


def test_scores_reports_errors(folder, tmp_path, monkeypatch):
    command = ("scores", "library", "gout.md", "--entity", "gout")
    assert "there is no query. Fix: " in error_of(folder, "scores", "library", "gout.md")
    assert "no document 'n9'" in error_of(folder, "scores", "library", "n9", "--entity", "gout")
    assert "is not a picture. Fix: end its name in .png or .svg" in error_of(folder, *command, "--plot", "gout.txt")
    run(folder, "index", tmp_path / "bare", "articles")
    assert "--discourse FOLDER" in error_of(folder, "scores", tmp_path / "bare", "gout.md", "--entity", "gout")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert "Fix: pip install 'capr[evaluate]'" in error_of(folder, *command, "--plot", tmp_path / "gout.png")


@pytest.mark.parametrize("count", [1, 5, 72, 400])
@pytest.mark.parametrize("width", [40, 80])
def test_a_chart_fits_the_terminal(count, width):
    points = tuple(SentenceScore(Span(i, i + 1), i / count, -0.5, i / count / 2 - 0.25) for i in range(count))
    headings = tuple((position, f"Part {position} of the whole") for position in range(0, count, max(1, count // 30)))
    chart = list(lines(Curve(Document("a", "x" * count), "e", "a", points, headings), width))
    assert max(map(len, chart)) <= width
    curves = chart[:12]
    assert {character for line in curves for character in line[8:]} <= set(BLOCKS)
    assert set("".join(line[8:] for line in curves[4:7])) <= {" "}
