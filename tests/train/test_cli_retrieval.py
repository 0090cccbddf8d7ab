"""`capr train bi`, `poly` and `cross`, as a user runs them."""

import json

import pytest

from capr.train import loop
from capr.train.pairs import Pairs

TITLES = (
    "Asthma", "Gout", "Measles", "Sepsis", "Malaria", "Rabies", "Migraine", "Pneumonia", "Psoriasis", "Epilepsy",
    "Anemia", "Influenza", "Scabies", "Cholera", "Typhoid fever", "Zorblax syndrome",
)  # fmt: skip
TINY = (
    "--epochs",
    "1",
    "--batch",
    "8",
    "--pieces",
    "32",
    "--negatives",
    "1",
    "--device",
    "cpu",
    "--learning-rate",
    "1e-3",
)


@pytest.fixture
def articles(tmp_path):
    """A document about each disease; the one about asthma speaks of gout, too."""
    path = tmp_path / "articles.jsonl"
    records = []
    for title in TITLES:
        more = " as in gout" if title == "Asthma" else ""
        sections = [
            {"heading": "Symptoms", "text": f"{title} is often a rash with fever and pain in the night{more}."},
            {"heading": "Treatment", "text": f"For {title} there is rest, and tablets or drops for some days."},
        ]
        records.append({"id": title, "title": title, "sections": sections})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def lenient(monkeypatch):
    """So few documents have something to validate with."""
    split = Pairs.split
    monkeypatch.setattr(Pairs, "split", lambda self, share, seed=0: split(self, 0.3, seed))


@pytest.mark.parametrize("kind", ["bi", "poly", "cross"])
def test_documents_become_a_model(run, articles, bert, tmp_path, lenient, kind):
    more = ("--scaled", "--epochs", "12", "--learning-rate", "2e-3") if kind == "poly" else ()
    result = run(kind, articles, "--base", bert, "-o", tmp_path / "out", "--licence", "CC0-1.0", *TINY, *more)
    assert result.code == 0, result.err
    assert result.out.startswith(f"{tmp_path / 'out'}: R@1 ")
    assert "32 passages, 32 queries: " in result.err
    assert "validation R@1" in result.err
    for name in ("model.onnx", "tokenizer.json", "manifest.json", "README.md", "training.pairs.gz"):
        assert (tmp_path / "out" / name).is_file()
    assert "CC0-1.0" in (tmp_path / "out" / "README.md").read_text()


def test_a_held_out_entity_is_nowhere_in_what_is_learned(run, articles, bert, tmp_path, lenient):
    (tmp_path / "test.txt").write_text("flu\n\nZorblax syndromes\n")
    result = run(
        "bi", articles, "--base", bert, "-o", tmp_path / "out", "--without", tmp_path / "test.txt", *TINY, "--separate",
        "--dimensions", "32,16", "--markers",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "28 passages, 28 queries, 2 documents and passages left out: " in result.err
    pairs = Pairs.load(tmp_path / "out" / "training.pairs.gz")
    said = [text.view("title") for text in pairs.passages] + [name for draw in pairs.draws for name in draw.names]
    assert not [words for words in said if "influenza" in words.lower() or "zorblax" in words.lower()]
    assert not [draw for draw in pairs.draws if draw.entity == "MESH:D007251"]
    assert not [text for text in pairs.passages if "MESH:D007251" in text.entities]
    assert all(0 <= number < 28 for draw in pairs.draws for number in draw.negatives)
    assert (tmp_path / "out" / "query.onnx").is_file()


def test_other_names_of_subjects_are_asked_for_and_held_out(run, articles, bert, tmp_path, lenient):
    aliases = tmp_path / "aliases.json"
    aliases.write_text(json.dumps({"Zorblax syndrome": ["Zorb"], "Gout": ["Podagra of old"]}))
    (tmp_path / "test.txt").write_text("podagra of old\n")
    result = run(
        "bi", articles, "--base", bert, "-o", tmp_path / "out", "--aliases", aliases, *TINY, "--without",
        tmp_path / "test.txt",
    )  # fmt: skip
    assert result.code == 0, result.err
    pairs = Pairs.load(tmp_path / "out" / "training.pairs.gz")
    named = {pairs.passages[draw.passage].title for draw in pairs.draws if "Zorb" in draw.names}
    assert named == {"Zorblax syndrome"}
    assert "Gout" not in {text.title for text in pairs.passages}


@pytest.mark.parametrize(
    ("kind", "options", "fact"),
    [
        ("bi", ("--views", "text=many"), "--views 'text=many' is not understood. Fix: write text=2"),
        ("cross", ("--views", "words"), "--views knows no 'words'. Fix: use text or opening or heading or title."),
        ("poly", ("--views", "text=0"), "--views 'text=0' leaves nothing to read. Fix: "),
        ("bi", ("--pooling", "max"), "--pooling knows no 'max'. Fix: use cls or mean."),
        ("bi", ("--similarity", "edit"), "--similarity knows no 'edit'. Fix: use cosine or dot."),
        ("poly", ("--similarity", "edit"), "--similarity knows no 'edit'. Fix: use dot or cosine."),
        ("bi", ("--without", "nothing.txt"), "nothing.txt"),
        ("bi", ("--aliases", "nothing.json"), "nothing.json"),
    ],
)
def test_what_is_not_understood_is_named_before_anything_is_trained(run, articles, bert, tmp_path, kind, options, fact):
    result = run(kind, articles, "--base", bert, "-o", tmp_path / "out", *TINY, *options)
    assert result.code == 2
    assert result.err.startswith("Error: ")
    assert fact in result.err
    assert " Fix: " in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["[1]", "{", '{"Gout": "Podagra"}'])
def test_other_names_have_to_be_lists(run, articles, bert, tmp_path, content):
    (tmp_path / "aliases.json").write_text(content)
    result = run("bi", articles, "--base", bert, "-o", tmp_path / "out", "--aliases", tmp_path / "aliases.json", *TINY)
    assert result.code == 2
    assert f"{tmp_path / 'aliases.json'} " in result.err
    assert " Fix: " in result.err


def test_a_base_that_is_not_there_is_named(run, articles, tmp_path, lenient):
    result = run("bi", articles, "--base", tmp_path / "none", "-o", tmp_path / "out", *TINY)
    assert result.code == 2
    assert f"Error: {tmp_path / 'none'} " in result.err
    assert " Fix: " in result.err


def test_too_few_documents_are_named(run, articles, bert, tmp_path):
    articles.write_text("".join(articles.read_text().splitlines(keepends=True)[:2]))
    result = run("bi", articles, "--base", bert, "-o", tmp_path / "out", *TINY)
    assert result.code == 2
    assert "too few. Fix: name more documents" in result.err


def test_an_interrupted_command_goes_on(run, articles, bert, tmp_path, lenient, monkeypatch):
    given = ("cross", articles, "--base", bert, "-o", tmp_path / "out", *TINY, "--epochs", "3")
    assert run("cross", articles, "--base", bert, "-o", tmp_path / "whole", *TINY, "--epochs", "3").code == 0
    with monkeypatch.context() as patch:
        save = loop._Fit._save

        def stopping(self):
            save(self)
            if self.step >= self.epoch_steps:
                raise KeyboardInterrupt

        patch.setattr(loop._Fit, "_save", stopping)
        assert run(*given).code == 130
    articles.unlink()
    again = run(*given, "--resume")
    assert again.code == 0, again.err
    assert "passages" not in again.err
    weights = [(tmp_path / name / "torch" / "model.safetensors").read_bytes() for name in ("whole", "out")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--without", "none.txt", "--part", "train"), "--part and --without would"),
        (("--without-passages", "none.jsonl"), "--without-passages would"),
        (("--aliases", "none.json", "--no-cues"), "--no-cues and --aliases would"),
        (("--vocabulary", "none.csv"), "--vocabulary would"),
    ],
)
def test_pairs_that_were_kept_are_not_labelled_again(run, bert, tmp_path, world, options, named):
    world.save(tmp_path / "my.pairs.gz")
    result = run("bi", tmp_path / "my.pairs.gz", "--base", bert, "-o", tmp_path / "out", *TINY, *options)
    assert result.code == 2
    assert named in result.err
    assert "Fix: make it again from the documents" in result.err


def test_pairs_that_were_kept_can_be_learned_from(run, articles, bert, tmp_path, lenient, world):
    world.save(tmp_path / "my.pairs.gz")
    result = run("bi", tmp_path / "my.pairs.gz", "--base", bert, "-o", tmp_path / "out", *TINY, "--views", "title")
    assert result.code == 0, result.err
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert facts["data"]["passages"] == 48
    assert facts["settings"]["views"] == [["title", 1.0]]
