"""`capr train bi`, `poly` and `cross`, as a user runs them."""

import json
import os
import shutil
from dataclasses import replace

import pytest
import torch

from capr.cli.sources.corpora import CorpusSource
from capr.supervise.pairs import TrainingPairs
from capr.train import loop

TITLES = (
    "Asthma",
    "Gout",
    "Measles",
    "Sepsis",
    "Malaria",
    "Rabies",
    "Migraine",
    "Pneumonia",
    "Psoriasis",
    "Epilepsy",
    "Anemia",
    "Influenza",
    "Scabies",
    "Cholera",
    "Typhoid fever",
    "Zorblax syndrome",
)
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
    """A document about each disease. The one about asthma also mentions gout."""
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
    """A split for validation, although there are few documents."""
    split = TrainingPairs.split
    monkeypatch.setattr(TrainingPairs, "split", lambda self, share, seed=0: split(self, 0.3, seed))


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


def test_a_held_out_entity_is_nowhere_in_the_training_data(run, articles, bert, tmp_path, lenient):
    (tmp_path / "test.txt").write_text("flu\n\nZorblax syndromes\n")
    result = run(
        "bi",
        articles,
        "--base",
        bert,
        "-o",
        tmp_path / "out",
        "--without",
        tmp_path / "test.txt",
        *TINY,
        "--separate",
        "--dimensions",
        "32,16",
        "--markers",
    )
    assert result.code == 0, result.err
    assert "28 passages, 28 queries, 2 documents and passages left out: " in result.err
    pairs = TrainingPairs.load(tmp_path / "out" / "training.pairs.gz")
    texts = [text.view("title") for text in pairs.passages] + [name for draw in pairs.draws for name in draw.names]
    assert not [words for words in texts if "influenza" in words.lower() or "zorblax" in words.lower()]
    assert not [draw for draw in pairs.draws if draw.entity == "MESH:D007251"]
    assert not [text for text in pairs.passages if "MESH:D007251" in text.entities]
    assert all(0 <= number < 28 for draw in pairs.draws for number in draw.negatives)
    assert (tmp_path / "out" / "query.onnx").is_file()


def test_other_names_of_subjects_are_queries_and_are_held_out(run, articles, bert, tmp_path, lenient):
    aliases = tmp_path / "aliases.json"
    aliases.write_text(json.dumps({"Zorblax syndrome": ["Zorb"], "Gout": ["Podagra of old"]}))
    (tmp_path / "test.txt").write_text("podagra of old\n")
    result = run(
        "bi",
        articles,
        "--base",
        bert,
        "-o",
        tmp_path / "out",
        "--aliases",
        aliases,
        *TINY,
        "--without",
        tmp_path / "test.txt",
    )
    assert result.code == 0, result.err
    pairs = TrainingPairs.load(tmp_path / "out" / "training.pairs.gz")
    named = {pairs.passages[draw.passage].title for draw in pairs.draws if "Zorb" in draw.names}
    assert named == {"Zorblax syndrome"}
    assert "Gout" not in {text.title for text in pairs.passages}


@pytest.mark.parametrize(
    ("kind", "options", "fact"),
    [
        ("bi", ("--views", "text=many"), "--views 'text=many' is not a list of views. Fix: write text=2"),
        (
            "cross",
            ("--views", "words"),
            "--views does not accept 'words'. Fix: use text or opening or heading or title.",
        ),
        ("poly", ("--views", "text=0"), "--views 'text=0' leaves nothing to read. Fix: "),
        ("bi", ("--pooling", "max"), "--pooling does not accept 'max'. Fix: use cls or mean."),
        ("bi", ("--similarity", "edit"), "--similarity does not accept 'edit'. Fix: use cosine or dot."),
        ("poly", ("--similarity", "edit"), "--similarity does not accept 'edit'. Fix: use dot or cosine."),
        ("bi", ("--without", "nothing.txt"), "nothing.txt"),
        ("bi", ("--aliases", "nothing.json"), "nothing.json"),
    ],
)
def test_bad_arguments_are_named_before_training(run, articles, bert, tmp_path, kind, options, fact):
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
    assert result.err.startswith(f"Error: there is no folder {tmp_path / 'none'}. Fix: ")  # before it reads
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["bi", "cross", "poly", "late"])
def test_a_base_that_cannot_be_used_leaves_no_folder(run, articles, bert, tmp_path, lenient, kind):
    base = shutil.copytree(bert, tmp_path / "base", ignore=shutil.ignore_patterns("*.safetensors"))
    result = run(kind, articles, "--base", base, "-o", tmp_path / "out", *TINY)
    assert result.code == 2
    assert f"Error: {base} cannot be loaded " in result.err
    assert not (tmp_path / "out").exists()


def test_too_few_documents_are_named(run, articles, bert, tmp_path):
    articles.write_text("".join(articles.read_text().splitlines(keepends=True)[:2]))
    result = run("bi", articles, "--base", bert, "-o", tmp_path / "out", *TINY)
    assert result.code == 2
    assert "too few. Fix: name more documents" in result.err
    assert not (tmp_path / "out").exists()


def test_an_interrupted_command_continues(run, articles, bert, tmp_path, lenient, monkeypatch):
    arguments = ("cross", articles, "--base", bert, "-o", tmp_path / "out", *TINY, "--epochs", "3")
    assert run("cross", articles, "--base", bert, "-o", tmp_path / "whole", *TINY, "--epochs", "3").code == 0
    with monkeypatch.context() as patch:
        save = loop.Loop._save

        def stopping(self):
            save(self)
            if self.step >= self.task.epoch_steps:
                raise KeyboardInterrupt

        patch.setattr(loop.Loop, "_save", stopping)
        interrupted = run(*arguments)
    assert interrupted.code == 130
    place = tmp_path / "out" / "checkpoint.pt"
    assert f"Training stopped. The same command with --resume continues from {place}.\n" in interrupted.err
    articles.unlink()
    again = run(*arguments, "--resume")
    assert again.code == 0, again.err
    assert "passages" not in again.err
    weights = [(tmp_path / name / "torch" / "model.safetensors").read_bytes() for name in ("whole", "out")]
    assert weights[0] == weights[1]


def test_a_finished_model_is_not_trained_again(run, articles, bert, tmp_path, lenient):
    arguments = ("bi", articles, "--base", bert, "-o", tmp_path / "out", *TINY)
    assert run(*arguments).code == 0
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = run(*arguments)
    assert again.code == 2
    fact = f"Error: {tmp_path / 'out'} has a finished model already. "
    assert again.err == f"{fact}Fix: name another folder with -o, or remove it.\n"
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    resumed = run(*arguments, "--resume")
    assert resumed.code == 0
    assert resumed.out == f"{tmp_path / 'out'} has a finished model, so there is nothing to resume.\n"
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before


@pytest.fixture
def interrupted(run, articles, bert, tmp_path, lenient, monkeypatch):
    """The arguments of a run that stopped after its first checkpoint."""
    arguments = ("cross", articles, "--base", bert, "-o", tmp_path / "out", *TINY)
    with monkeypatch.context() as patch:
        save = loop.Loop._save

        def stopping(self):
            save(self)
            raise KeyboardInterrupt

        patch.setattr(loop.Loop, "_save", stopping)
        assert run(*arguments).code == 130
    return arguments


def test_an_unfinished_training_is_neither_overwritten_nor_continued_with_other_documents(
    run, interrupted, articles, tmp_path
):
    out = tmp_path / "out"
    checkpoint = out / "checkpoint.pt"
    before = checkpoint.read_bytes()
    again = run(*interrupted)
    assert again.code == 2
    fact = f"{out} has the checkpoint of an unfinished training"
    fix = f"continue with --resume, name another folder with -o, or delete {checkpoint}"
    assert again.err == f"Error: {fact}. Fix: {fix}.\n"

    other = tmp_path / "other.jsonl"
    other.write_text(articles.read_text().replace("the", "das"))
    kind, _, *options = interrupted
    for name, message in ((other, "was made from other documents"), (tmp_path / "none", "no such file or folder")):
        result = run(kind, name, *options, "--resume")
        assert result.code == 2
        assert message in result.err
        assert " Fix: " in result.err
    result = run(*interrupted, "--part", "train", "--resume")
    assert "or with other options for reading them" in result.err
    assert checkpoint.read_bytes() == before
    assert (out / "training.documents.json").exists()
    assert run(*interrupted, "--resume").code == 0
    assert not (out / "training.documents.json").exists()


def test_a_checkpoint_of_other_training_data_is_not_continued(run, interrupted, tmp_path):
    out = tmp_path / "out"
    pairs = TrainingPairs.load(out / "training.pairs.gz")
    other = [replace(passage, text=passage.text + " more") for passage in pairs.passages]
    TrainingPairs(other, pairs.draws).save(tmp_path / "other.pairs.gz")
    kind, _, *options = interrupted
    result = run(kind, tmp_path / "other.pairs.gz", *options, "--resume")
    assert result.code == 2
    assert f"{out / 'checkpoint.pt'} belongs to a run with other training data. Fix: " in result.err
    checkpoint = torch.load(out / "checkpoint.pt", weights_only=True)
    del checkpoint["data"]  # as older versions wrote it
    torch.save(checkpoint, out / "checkpoint.pt")
    assert run(kind, out / "training.pairs.gz", *options, "--resume").code == 0


def test_an_interruption_before_a_checkpoint_starts_again(run, articles, bert, tmp_path, lenient, monkeypatch):
    def stop(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop.Loop, "_step", stop)
    older = tmp_path / "out" / "older"
    older.mkdir(parents=True)
    (older / "checkpoint.pt").write_bytes(b"of an older run")
    os.utime(older / "checkpoint.pt", (0, 0))
    result = run("cross", articles, "--base", bert, "-o", tmp_path / "out", *TINY)
    assert result.code == 130
    assert "Training stopped before its first checkpoint. The same command starts again.\n" in result.err


def test_an_interrupted_tagger_continues_without_an_option(run, bert, tmp_path, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(CorpusSource, "load", stop)
    result = run("tagger", tmp_path, "--base", bert, "-o", tmp_path / "out")
    assert result.code == 130
    assert result.err.endswith("The same command continues from the last checkpoint, if there is one.\n")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--without", "none.txt", "--part", "train"), "--part and --without would"),
        (("--without-passages", "none.jsonl"), "--without-passages would"),
        (("--aliases", "none.json", "--no-aspects-from-text"), "--no-aspects-from-text and --aliases would"),
        (("--vocabulary", "none.csv"), "--vocabulary would"),
    ],
)
def test_saved_pairs_are_not_labelled_again(run, bert, tmp_path, world, options, named):
    world.save(tmp_path / "my.pairs.gz")
    result = run("bi", tmp_path / "my.pairs.gz", "--base", bert, "-o", tmp_path / "out", *TINY, *options)
    assert result.code == 2
    assert named in result.err
    assert "Fix: make it again from the documents" in result.err


def test_saved_pairs_are_training_data(run, articles, bert, tmp_path, lenient, world):
    world.save(tmp_path / "my.pairs.gz")
    result = run("bi", tmp_path / "my.pairs.gz", "--base", bert, "-o", tmp_path / "out", *TINY, "--views", "title")
    assert result.code == 0, result.err
    facts = json.loads((tmp_path / "out" / "training.json").read_text())
    assert facts["data"]["passages"] == 48
    assert facts["settings"]["views"] == [["title", 1.0]]
