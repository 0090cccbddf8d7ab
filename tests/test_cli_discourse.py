"""The commands around sentences with discourse vectors."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from typer.testing import CliRunner

import capr
from capr.cli import explain, typer_app
from capr.cli.strip import BLOCKS, lines
from capr.documents import Document, Span
from capr.search import Curve, SentenceScore, models

_spec = spec_from_file_location("reference", Path(__file__).parent / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)

ARTICLES = ("gout.md", "asthma.md", "epilepsy.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Articles, the folder of a model, and a library with both."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "articles").mkdir()
    (folder / "model").mkdir()
    for document in capr.samples.documents():
        if document.id in ARTICLES:
            (folder / "articles" / document.id).write_text(document.text)
    with pytest.MonkeyPatch.context() as patch:
        load(patch)
        run(folder, "index", "library", "articles", "--discourse", "model")
    return folder


def load(patch):
    """Lets the folder of a model be one."""
    made = reference.WordDiscourse
    patch.setattr(models, "load_discourse", lambda folder: made(half=96, folder=str(Path(folder).resolve())))


@pytest.fixture(autouse=True)
def _model(monkeypatch):
    load(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")


def run(folder, *arguments, code=0):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(typer_app, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_indexing_gives_sentences_vectors_and_they_are_counted_and_verified(folder):
    stats = json.loads(run(folder, "stats", "library", "--json").stdout)
    assert stats["passages_with_sentences"] == stats["passages"]
    assert stats["discourse"]["name"] == "word-cdv"
    printed = run(folder, "stats", "library").stdout
    assert f"sentence vectors {stats['sentences']:,}" in " ".join(printed.split())
    assert "discourse: word-cdv (192 dimensions)" in printed
    assert f"{stats['sentences']:,} sentence vectors: all is well" in run(folder, "verify", "library").stdout


def test_searching_by_entity_and_aspect(folder):
    asked = ("--entity", "gout", "--aspect", "treatment", "--mode", "cdv")
    found = json.loads(run(folder, "search", "library", *asked, "--json").stdout)
    assert (found["mode"], found["notices"]) == ("cdv", [])
    assert (found["hits"][0]["document"], found["hits"][0]["headings"][-1]) == ("gout.md", "Treatment")
    printed = run(folder, "search", "library", *asked, "--explain", "-k", "1").stdout
    assert "1 passage (cdv)" in printed
    assert "cdv 1. (" in printed


def test_a_plain_question_says_how_it_was_understood(folder):
    result = run(folder, "search", "library", "symptoms of asthma", "--mode", "cdv", "-k", "1")
    assert result.stdout.startswith("asthma: also")
    assert "1. asthma.md" in result.stdout
    assert "understood as the entity 'asthma' and the aspect 'symptoms'" in result.stderr


def test_a_query_that_the_model_does_not_know_is_told_of(folder):
    result = run(folder, "search", "library", "--entity", "...", "--mode", "cdv", code=1)
    assert "0 passages (cdv)" in result.stdout
    told = "Note: the discourse model knows no word of the entity '...' of the query, so that nothing was found"
    assert told in " ".join(result.stderr.split())


def test_a_library_that_is_there_gets_vectors_of_sentences(folder, tmp_path):
    run(folder, "index", tmp_path / "library", "articles")
    printed = run(folder, "encode", tmp_path / "library", "--discourse", "model").stdout
    assert "sentences encoded by word-cdv; now " in printed
    assert "passage" not in printed
    again = run(folder, "encode", tmp_path / "library").stdout
    assert "0 sentences encoded by word-cdv" in again
    result = run(folder, "index", tmp_path / "library", "articles", "--discourse", "none")
    assert "have no vectors yet" not in result.stderr


def test_documents_added_without_the_model_are_told_of(folder, tmp_path):
    run(folder, "index", tmp_path / "library", "articles/gout.md", "--discourse", "model")
    result = run(folder, "index", tmp_path / "library", "articles", "--discourse", "none")
    assert f"have no vectors yet. Fix: capr encode {tmp_path / 'library'}." in result.stderr
    run(folder, "encode", tmp_path / "library")
    assert "have no vectors yet" not in run(folder, "index", tmp_path / "library", "articles").stderr


def test_encoding_goes_on_with_the_sentences_of_a_library_without_an_encoder(folder, tmp_path):
    run(folder, "index", tmp_path / "library", "articles/gout.md", "--encoder", "none", "--discourse", "model")
    none = ("--encoder", "none", "--discourse", "none")
    run(folder, "index", tmp_path / "library", "articles/asthma.md", *none)
    printed = run(folder, "encode", tmp_path / "library").stdout
    assert "sentences encoded by word-cdv; now " in printed
    assert "passage" not in printed
    run(folder, "index", tmp_path / "library", "articles", *none)
    only = run(folder, "encode", tmp_path / "library", "--encoder", "none").stdout
    assert "sentences encoded by word-cdv; now " in only
    assert not only.startswith("0 ")
    assert "passage" not in only
    assert 'the discourse model is "none"' in refused(folder, "encode", tmp_path / "library", "--discourse", "none")


def test_explaining_shows_the_curves_and_the_best_sentences(folder):
    printed = run(folder, "explain", "library", "gout.md", "--entity", "gout", "--aspect", "treatment").stdout
    told = printed.splitlines()
    assert told[0].startswith("gout.md: ")
    assert told[0].endswith(" sentences, entity 'gout', aspect 'treatment'")
    assert [line.split()[0] for line in told if line[:1].isalpha()][1:5] == ["entity", "aspect", "both", "section"]
    assert max(map(len, told)) <= 80
    assert "5 Treatment" in printed
    begin, end = map(int, printed.split("answer [")[1].split(")")[0].split(", "))
    whole = (folder / "articles" / "gout.md").read_text()
    assert whole.index("## Treatment") <= begin < end <= whole.index("## Complications")
    place = printed.split("[", 1)[1].split(")")[0].split(", ")
    text = (folder / "articles" / "gout.md").read_text()
    assert " ".join(text[int(place[0]) : int(place[1])].split())[:60] in printed


@pytest.mark.parametrize(("half", "asked"), [("entity", "gout"), ("aspect", "treatment")])
def test_explaining_one_half_shows_its_scores_alone(folder, half, asked):
    whole = ("explain", "library", "gout.md", f"--{half}", asked)
    printed = run(folder, *whole).stdout
    highest = max(one[half] for one in json.loads(run(folder, *whole, "--json").stdout)["sentences"])
    assert f"█ is {highest:.2f}, no bar 0 or less" in printed
    assert re.findall(r"^(\S+) \[", printed, re.MULTILINE)[:2] == ["answer", f"{highest:.2f}"]
    assert "(entity" not in printed
    assert "both" not in printed


@pytest.mark.parametrize(
    ("aspect", "scores", "told"),
    [
        ("", (-0.09, 0.0, -0.045), "nothing in the document speaks of it"),
        ("cause", (-0.09, -0.2, -0.145), "nothing in the document speaks of both together"),
        ("cause", (0.2, -0.4, -0.1), "nothing in the document speaks of both together"),
    ],
)
def test_explaining_a_document_that_speaks_of_something_else(capsys, aspect, scores, told):
    points = tuple(SentenceScore(Span(place, place + 1), *scores) for place in range(9))
    explain._show(Curve(Document("a", "x" * 9), "gout", aspect, points))
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.endswith(told)
    assert ("no score is above 0" in printed) == (max(scores) <= 0)
    assert ("█ is 0.20" in printed) == (max(scores) > 0)
    assert "█ is -" not in printed
    assert "answer" not in printed


def test_explaining_as_json(folder):
    asked = ("explain", "library", "gout.md", "--entity", "gout")
    found = json.loads(run(folder, *asked, "--json").stdout)
    text = (folder / "articles" / "gout.md").read_text()
    assert found.keys() == {"document", "by", "entity", "aspect", "answer", "headings", "sentences"}
    assert text[found["answer"]["begin"] : found["answer"]["end"]] == found["answer"]["text"]
    assert all(text[one["begin"] : one["end"]] == one["text"] for one in found["sentences"])
    assert "aspect  " not in run(folder, *asked).stdout


@pytest.mark.parametrize(("name", "begins"), [("gout.png", b"\x89PNG"), ("gout.svg", b"<?xml")])
def test_explaining_draws(folder, tmp_path, name, begins):
    asked = ("explain", "library", "gout.md", "--entity", "gout", "--aspect", "treatment", "--plot", tmp_path / name)
    assert "drawn in " in run(folder, *asked).stdout.replace("\n", "")
    assert (tmp_path / name).read_bytes().startswith(begins)


def refused(folder, *arguments):
    return str(run(folder, *arguments, code=1).exception)


def test_what_cannot_be_explained(folder, tmp_path, monkeypatch):
    asked = ("explain", "library", "gout.md", "--entity", "gout")
    assert "nothing to look for. Fix: " in refused(folder, "explain", "library", "gout.md")
    assert "no document 'nobody'" in refused(folder, "explain", "library", "nobody", "--entity", "gout")
    assert "is no picture. Fix: end its name in .png or .svg" in refused(folder, *asked, "--plot", "gout.txt")
    run(folder, "index", tmp_path / "bare", "articles")
    assert "--discourse FOLDER" in refused(folder, "explain", tmp_path / "bare", "gout.md", "--entity", "gout")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert "Fix: pip install 'capr[evaluate]'" in refused(folder, *asked, "--plot", tmp_path / "gout.png")


@pytest.mark.parametrize("count", [1, 5, 72, 400])
@pytest.mark.parametrize("width", [40, 80])
def test_a_strip_fits_the_terminal(count, width):
    points = tuple(SentenceScore(Span(i, i + 1), i / count, -0.5, i / count / 2 - 0.25) for i in range(count))
    headings = tuple((place, f"Part {place} of the whole") for place in range(0, count, max(1, count // 30)))
    drawn = list(lines(Curve(Document("a", "x" * count), "e", "a", points, headings), width))
    assert max(map(len, drawn)) <= width
    curves = drawn[:12]
    assert {character for line in curves for character in line[8:]} <= set(BLOCKS)
    assert set("".join(line[8:] for line in curves[4:7])) <= {" "}
