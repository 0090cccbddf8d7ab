"""Discourse models are trained from documents, by the command, and read without torch."""

import gzip
import json
import math
import random
import shutil
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import capr
from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.cli.train_cdv import _described
from capr.documents import Annotation, CaprError, Document, Span
from capr.index import OnnxEncoder, arrays
from capr.index.discourse import codes, is_discourse, load_discourse
from capr.index.subwords import read_glove, words_of
from capr.models.cdv import Sizes
from capr.search.models import shipped
from capr.supervise.labels import Labeller
from capr.train.cdv import Sources, _features, train
from capr.train.cdv_loop import Targets, Wanted, balances
from capr.train.cdv_recipe import OURS, PAPER
from capr.train.cdv_spaces import Described, train_codes
from capr.train.discourses import Discourses, Lesson
from capr.train.loop import Schedule
from capr.train.losses import distances

_spec = spec_from_file_location("reference", Path(__file__).parents[1] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)

DISEASES = (
    "asthma", "gout", "measles", "malaria", "rabies", "cholera", "mumps", "leprosy", "scurvy", "anthrax", "tetanus",
    "psoriasis", "epilepsy", "lupus", "dengue", "typhus",
)  # fmt: skip
SAID = {
    "Symptoms": ("wheeze", "cough", "pain", "fever", "rash", "swelling"),
    "Treatment": ("tablets", "rest", "surgery", "drops", "colchicine", "oxygen"),
    "Prognosis": ("recovery", "survival", "death", "years", "outcome", "relapse"),
}
FILLER = ("often", "people", "there", "patients", "usually", "cases", "many", "some", "most", "then")


def article(disease, number):
    draw = random.Random(f"{disease} {number}")

    def sentence(words, subject):
        return f"{subject} {' '.join(draw.sample(words, 3))} {' '.join(draw.sample(FILLER, 4))}.".capitalize()

    sections = [
        {"heading": heading, "text": " ".join(sentence(words, draw.choice([disease, "it", "it"])) for _ in range(4))}
        for heading, words in SAID.items()
    ]
    abstract = f"{disease.title()} is a disease of {' '.join(draw.sample(FILLER, 4))} people."
    return {"id": f"{disease}-{number}", "title": disease.title(), "abstract": abstract, "sections": sections}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Articles, word vectors, and the names of two diseases that are held out."""
    folder = tmp_path_factory.mktemp("world")
    articles = [article(disease, number) for number in range(4) for disease in DISEASES]
    (folder / "articles.jsonl").write_text("".join(json.dumps(one) + "\n" for one in articles))
    texts = [part["text"] for one in articles for part in one["sections"]] + list(DISEASES)
    known = sorted(
        {word for text in texts for word in words_of(text)} | {"symptoms", "treatment", "prognosis", "signs"}
    )
    vectors = np.random.default_rng(0).normal(size=(len(known), 24))
    rows = (f"{word} {' '.join(f'{value:.4f}' for value in row)}\n" for word, row in zip(known, vectors, strict=True))
    (folder / "glove.txt").write_text("".join(rows))
    (folder / "without.txt").write_text("Gout\nLupus\n")
    return folder


@pytest.fixture(scope="module")
def trained(world):
    """The folder that the command makes, and what it said."""
    out = world / "cdv"
    said = CliRunner().invoke(
        typer_app,
        ["train", "cdv", str(world / "articles.jsonl"), "-o", str(out), "--vectors", str(world / "glove.txt"),
         "--without", str(world / "without.txt"), "--epochs", "12", "--batch", "4", "--learning-rate", "3e-3",
         "--device", "cpu", "--licence", "CC0"],
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    return out, said.output


def documents(world):
    return list(capr.read(world / "articles.jsonl"))


def labelled(world, **options):
    return Discourses.read(documents(world), Labeller(annotator(False), **options))


def test_sentences_are_about_the_title_and_the_headings(world):
    discourses = labelled(world)
    lesson = discourses.lessons[0]
    assert lesson.sentences[0].startswith("Asthma is a disease")
    assert [discourses.entities[numbers[0]][0] for numbers in lesson.entities] == ["Asthma"] * 13
    names = [discourses.aspects[numbers[0]][0] for numbers in lesson.aspects]
    assert names == ["description"] + ["signs and symptoms"] * 4 + ["treatment"] * 4 + ["prognosis"] * 4
    assert lesson.flags[0] == [1, 1, 0, 0, 0, 1, 0]
    assert lesson.passages == [0] + [1] * 4 + [2] * 4 + [3] * 4


def test_what_is_held_out_is_left_out_under_all_its_names(world):
    assert (
        len(labelled(world, held_out={"gouty arthritis", "Lupus"}, aliases={"Gout": ["gouty arthritis"]}).lessons) == 56
    )
    by_vocabulary = labelled(world, held_out={"Varicose veins", "rubeola"})  # the vocabulary knows it as measles
    assert "Measles" not in {name for names in by_vocabulary.entities for name in names}


def test_texts_of_a_test_are_not_learned_from(world):
    text = documents(world)[0].text.split("\n")[0]
    discourses = labelled(world, held_out_texts=[text])
    assert discourses.lessons[0].passages[0] == -1
    assert discourses.lessons[0].aspects[0] == []
    assert text not in set(discourses.texts)


def test_a_name_inside_of_a_word_is_not_said():
    text = "Many of them also cough at night, and rest is good for all. It is unlike ALS (or so) in most families."
    begin = text.index("ALS")
    section = Annotation("section", Span(0, len(text)), {"heading": "Treatment"})
    marked = (section, Annotation("link", Span(begin, begin + 3), {}))
    discourses = Discourses.read([Document("x", text, "Kennedy disease", {}, marked)], Labeller(annotator(False)))
    (lesson,) = discourses.lessons
    named = [[discourses.entities[number][0] for number in some] for some in lesson.entities]
    assert named == [["Kennedy disease"], ["Kennedy disease", "ALS"]]


def test_discourses_are_kept(world, tmp_path):
    discourses = labelled(world)
    discourses.save(tmp_path / "a.discourses.gz")
    assert Discourses.load(tmp_path / "a.discourses.gz") == discourses
    learn, held = discourses.split(0.1, 1)
    assert len(held.lessons) == 6
    assert not {lesson.id for lesson in learn.lessons} & {lesson.id for lesson in held.lessons}
    (tmp_path / "a.discourses.gz").write_bytes(b"none")
    with pytest.raises(CaprError, match="cannot be read"):
        Discourses.load(tmp_path / "a.discourses.gz")


def test_aspects_of_few_documents_are_left_out():
    lessons = [
        Lesson(str(n), ["a", "b"], [[0] * 7] * 2, [[0], [0]], [[k], [9]], [0, 0]) for n in range(3) for k in range(9)
    ]
    lessons.append(Lesson("x", ["a"], [[0] * 7], [[0]], [[10]], [0]))
    found = Discourses(lessons, [["e"]], [[str(n)] for n in range(11)]).with_usual_aspects()
    assert found.aspects == [[str(n)] for n in range(10)]
    assert found.lessons[-1].aspects == [[]]


def test_targets_of_equation_16():
    labels = np.eye(3, dtype=np.float32)
    import torch

    wanted = Wanted([[0, 1], [], [2]], "cpu")
    np.testing.assert_allclose(
        wanted.vectors(torch.from_numpy(labels)), [[math.sqrt(0.5), math.sqrt(0.5), 0], [0, 0, 0], [0, 0, 1]], atol=1e-6
    )
    assert wanted.counted.tolist() == [1, 0, 1]
    assert Wanted([[0, 1], [], [2]], "cpu", [0.1, 0.5, 0.2]).counted.tolist() == pytest.approx([0.5, 0, 0.2])


def test_names_are_drawn():
    class Space:
        dimensions = 1

        def vectors(self, names):
            return np.array([[float(name)] for name in names], np.float32)

    targets = Targets([["1", "2"], ["3"]], Space(), "cpu")
    assert targets.usual.flatten().tolist() == [1, 3]
    drawn = {tuple(targets.drawn(np.random.default_rng(seed)).flatten().tolist()) for seed in range(20)}
    assert drawn == {(1, 3), (2, 3)}


def test_frequent_aspects_count_less(world):
    discourses = labelled(world)
    entities, aspects = balances(discourses)
    assert set(entities) == {1.0}
    counts = np.zeros(len(aspects))
    for lesson in discourses.lessons:
        for numbers in lesson.aspects:
            counts[numbers] += 1
    share = counts / counts.sum()
    assert aspects == pytest.approx([min(1, 0.03 / math.sqrt(one)) for one in share])


def test_a_document_is_about_the_first_entity_that_it_has(tmp_path):
    """A title line has no label: its subject is that of the sentence below."""
    for disease in ("gout", "asthma"):
        text = (
            f"# {disease.title()}\n\n## Treatment\n\n{disease.title()} is treated. So are many others in most people.\n"
        )
        (tmp_path / f"{disease}.md").write_text(text)
    discourses = Discourses.read(capr.read(tmp_path), Labeller(annotator(False)))
    assert [lesson.entities[0] for lesson in discourses.lessons] == [[], []]
    assert balances(discourses)[0] == [1.0, 1.0]
    assert balances(Discourses([Lesson("x", ["a"], [[0] * 7], [[]], [[]], [0])], [["e"]])) == ([0.1], [])


def test_entities_that_are_only_mentioned_count_a_tenth():
    import torch

    lessons = [Lesson("x", ["a", "b", "c"], [[0] * 7] * 3, [[], [0], [1]], [[]] * 3, [0] * 3)]
    weights, _ = balances(Discourses(lessons, [["e"], ["f"]]))
    draw = np.random.default_rng(0)
    labels, found = (draw.normal(size=size).astype(np.float32) for size in ((2, 3), (3, 3)))
    labels /= np.linalg.norm(labels, axis=1, keepdims=True)
    wanted = Wanted(lessons[0].entities, "cpu", weights)
    nothing = torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(3)
    vectors = wanted.vectors(torch.from_numpy(labels))
    loss = distances((torch.from_numpy(found), nothing[0]), (vectors, nothing[1]), (wanted.counted, nothing[2]))
    first, second = (np.linalg.norm(found[place + 1] - labels[place]) for place in (0, 1))
    assert loss.item() == pytest.approx((0 + first + 0.1 * second) / 3, abs=1e-5)


def test_training_ends_above_chance(trained):
    out, said = trained
    card = json.loads((out / "training.json").read_text())
    assert card["scores"]["R@1"] > 0.3  # by chance one of twelve
    assert card["licence"] == "CC0"
    assert card["data"]["documents"] == 56
    assert "8 documents and passages left out" in said
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "manifest.json", "model.onnx", "names.npz", "training.discourses.gz", "training.json", "words.npz",
    ]  # fmt: skip


def test_a_trained_model_finds_the_sentences(trained):
    out, _ = trained
    assert is_discourse(out)
    model = load_discourse(out)
    text = "Mumps pain fever rash often.\nIt wheeze cough often many.\nIt surgery rest tablets then.\n"
    spans, vectors = model.sentences(Document("x", text))
    assert vectors.shape == (3, 48)
    assert len(spans) == 3
    np.testing.assert_allclose(np.linalg.norm(vectors[:, :24], axis=1), [0.5**0.5] * 3, atol=1e-5)
    symptoms, treatment = vectors @ model.query("", "Symptoms"), vectors @ model.query("", "treatment")
    assert symptoms[:2].min() > symptoms[2]
    assert treatment[2] > treatment[:2].max()


def test_queries(trained):
    model = load_discourse(trained[0])
    both, entity, aspect, none = (
        model.query(*given) for given in (("mumps", "signs"), ("mumps", ""), ("", "signs"), ("", ""))
    )
    np.testing.assert_allclose(both, entity + aspect, atol=1e-6)
    assert not entity[24:].any()
    assert not aspect[:24].any()
    assert not none.any()
    assert np.linalg.norm(entity) == pytest.approx(1.3 / math.sqrt(2), abs=1e-5)
    assert np.isfinite(model.query("no such disease", "dawn song")).all()  # unknown names are encoded on the fly


def test_what_the_model_does_not_know_is_told_of(trained, tmp_path):
    """GloVe has no n-grams: an aspect of which it knows no word is zeros."""
    library = capr.Library(tmp_path / "library", encoder="none", discourse=trained[0])
    library.add([Document("mumps", "Mumps pain fever.", "Mumps"), Document("rabies", "Rabies rest tablets.", "Rabies")])
    nothing = library.search(capr.Query(aspect="zebra"), mode="cdv")
    told = "the discourse model knows no word of the aspect 'zebra' of the query, so that"
    assert (len(nothing), nothing.notices) == (0, (f"{told} nothing was found",))
    results = library.search(capr.Query(entity="rabies", aspect="zebra"), mode="cdv")
    assert (results[0].document, results.notices) == ("rabies", (f"{told} its other half alone decides",))


def test_documents_of_any_length(trained):
    model = load_discourse(trained[0])
    for text, count in (("", 0), ("Gout.", 1), ("It hurts. " * 5000, 5000)):
        spans, vectors = model.sentences(Document("x", text))
        assert len(spans) == count
        assert vectors.shape == (count, 48)
        assert np.isfinite(vectors).all()


def test_resumed_it_is_the_same(world, tmp_path):
    discourses, vectors = labelled(world), read_glove(world / "glove.txt")
    recipe = replace(OURS, sizes=Sizes(8, 8), dimensions=8)
    schedule = Schedule(epochs=2, batch=8, learning_rate=1e-3, device="cpu", patience=0)

    class StopError(Exception):
        pass

    validated = []

    def stop(stage, report):
        if validated:  # so that the checkpoint of the first epoch is there
            raise StopError
        if report.scores:
            validated.append(report)

    whole = train(discourses, recipe, schedule, tmp_path / "whole", Sources(vectors))
    with pytest.raises(StopError):
        train(discourses, recipe, schedule, tmp_path / "part", Sources(vectors), told=stop)
    assert (tmp_path / "part" / "checkpoint.pt").is_file()
    assert train(discourses, recipe, schedule, tmp_path / "part", Sources(vectors), resume=True) == whole
    for name in ("model.onnx", "words.npz"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_recipe_of_the_paper(world, tmp_path):
    recipe = replace(PAPER, sizes=replace(PAPER.sizes, hidden=8, delta=8), dimensions=16)
    schedule = Schedule(epochs=2, batch=8, learning_rate=1e-3, device="cpu")
    described = [(("King's evil", "scrofula"), "a painful swelling")]
    train(labelled(world), recipe, schedule, tmp_path, Sources(read_glove(world / "glove.txt"), descriptions=described))
    model = load_discourse(tmp_path)
    assert model.manifest.space == "codes"
    known, alias, unseen = (model.query(name, "")[:16] for name in ("king's evil", "Scrofula", "asthma attack"))
    np.testing.assert_array_equal(known, alias)
    assert np.linalg.norm(unseen) == pytest.approx(0.5**0.5, abs=1e-5)
    assert not np.allclose(known, unseen)
    assert not model.query("zebra", "zebra").any()  # GloVe knows no part of it
    assert model.sentences(Document("x", "Gout hurts. It swells."))[1].shape == (2, 32)


def test_the_space_of_codes_tells_aspects_apart_of_which_one_is_frequent(world, tmp_path):
    words = read_glove(world / "glove.txt")
    known = DISEASES[:6]
    often = {word: 60 if number == 0 else 6 for number, word in enumerate(known)}
    described = [Described(f"{word} {word}", (word,), (word,)) for word, count in often.items() for _ in range(count)]
    train_codes(described, words, tmp_path, "aspects", 16, epochs=120, balanced=True)
    vectors = codes(tmp_path, words, "aspects").vectors(known)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = (vectors @ vectors.T)[~np.eye(len(known), dtype=bool)]
    assert alike.mean() < 0.3  # 0.43 if frequent codes, or bits that no code has, are learned as well


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--without", "none.txt"], "--without would"),
        (["--without-passages", "none.jsonl", "--part", "train"], "--part and --without-passages would"),
        (["--aliases", "none.json", "--no-cues"], "--no-cues and --aliases would"),
        (["--vocabulary", "none.csv"], "--vocabulary would"),
    ],
)
def test_what_was_labelled_before_is_not_labelled_again(trained, tmp_path, options, named):
    given = ["train", "cdv", str(trained[0] / "training.discourses.gz"), "-o", str(tmp_path / "x"), *options]
    found = CliRunner().invoke(typer_app, given)
    assert isinstance(found.exception, CaprError)
    assert named in str(found.exception)
    assert "Fix: make it again from the documents" in str(found.exception)


def test_descriptions_of_a_test_are_not_learned_from(world):
    document = documents(world)[0]
    first, *others = (document[span] for span in capr.sentences(document.text))
    finder = annotator(False)
    told = _described([str(world / "articles.jsonl")], Labeller(finder, held_out_texts=[f"See:  {first}\nAnd more."]))
    said = [text for names, text in told if names[0] == "Asthma"]
    assert first not in said
    assert set(others) <= set(said)


def test_balanced(world, tmp_path):
    shorter = tmp_path / "few.discourses.gz"
    known = labelled(world)
    Discourses(known.lessons[:8], known.entities, known.aspects).save(shorter)
    given = ["train", "cdv", str(shorter), "-o", str(tmp_path / "x"), "--vectors", str(world / "glove.txt")]
    found = CliRunner().invoke(typer_app, [*given, "--epochs", "1", "--device", "cpu", "--balanced"])
    assert found.exit_code == 0, found.output
    assert json.loads((tmp_path / "x" / "training.json").read_text())["settings"]["balanced"] is True


def test_the_embedding_of_equation_4_and_the_loss_of_equation_12(world, tmp_path):
    known = labelled(world)
    Discourses(known.lessons[:8], known.entities, known.aspects).save(tmp_path / "few.discourses.gz")
    given = ["train", "cdv", str(tmp_path / "few.discourses.gz"), "--vectors", str(world / "glove.txt"), "--recipe"]
    given += ["paper", "--epochs", "1", "--device", "cpu", "--loss", "distance"]
    for embedding, layers in (("ends", 0), ("dense", 1)):
        out = tmp_path / embedding
        found = CliRunner().invoke(typer_app, [*given, "-o", str(out), "--embedding", embedding])
        assert found.exit_code == 0, found.output
        settings = json.loads((out / "training.json").read_text())["settings"]
        assert (settings["loss"], settings["dense"]) == ("distance", bool(layers))
        operators = [node.op_type for node in onnx.load(out / "entities.onnx").graph.node]
        assert (operators.count("LSTM"), operators.count("Tanh")) == (1, layers)
        assert np.linalg.norm(load_discourse(out).query("gout", "")) == pytest.approx(0.5**0.5, abs=1e-5)


def halved(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_spaces_that_were_kept_and_are_damaged_are_made_again(world, tmp_path):
    recipe = replace(PAPER, sizes=replace(PAPER.sizes, hidden=8, delta=8), dimensions=16)
    schedule, sources = Schedule(epochs=1, batch=8, device="cpu"), Sources(read_glove(world / "glove.txt"))
    discourses = Discourses(labelled(world).lessons[:8], labelled(world).entities, labelled(world).aspects)
    train(discourses, recipe, schedule, tmp_path, sources)
    whole = {name: (tmp_path / name).read_bytes() for name in ("entities.npz", "aspects.onnx", "aspects.npz")}
    halved(tmp_path / "entities.npz")
    halved(tmp_path / "aspects.onnx")
    train(discourses, recipe, schedule, tmp_path, sources, resume=True)
    assert {name: (tmp_path / name).read_bytes() for name in whole} == whole
    halved(tmp_path / "words.npz")
    with pytest.raises(CaprError, match=r"words\.npz holds no word vectors.*Fix: "):
        train(discourses, recipe, schedule, tmp_path, sources, resume=True)


def test_vectors_of_sentences_are_kept_as_a_whole(world, tmp_path, monkeypatch):
    discourses, path = labelled(world), tmp_path / "vectors.npz"
    learn, held = discourses.split(0.1, 1)
    reads = []

    def read(texts):
        reads.append(len(texts))
        return np.arange(len(texts) * 2, dtype=np.float32).reshape(-1, 2)

    def found():
        reads.clear()
        return [row.tolist() for part in _features(learn, held, read, path, lambda *told: None) for row in part]

    first = found()
    assert reads
    assert found() == first
    assert not reads
    halved(path)
    assert found() == first
    assert reads

    def interrupted(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    kept = path.read_bytes()
    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        arrays.save(path, compressed=False, vectors=np.zeros(1))
    assert path.read_bytes() == kept


def test_too_few_documents(world, tmp_path):
    few = Discourses(labelled(world).lessons[:3])
    with pytest.raises(CaprError, match="too few"):
        train(few, OURS, Schedule(), tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--recipe", "mine"], "--recipe knows no 'mine'"),
        (["--over", "gru"], "--over knows no 'gru'"),
        (["--space", "outer"], "--space knows no 'outer'"),
        (["--tune", "1"], "there is none"),
        (["--vectors", "none.txt"], "there is no none.txt"),
        (["--device", "tpu"], "--device knows no 'tpu'"),
        (["--space", "encoder"], "needs one"),
        (["--descriptions", "a.jsonl"], "--descriptions are for --space codes, and the space is names"),
        (["--recipe", "paper", "--query-encoder", "a"], "--query-encoder is for --space encoder"),
        (["--base", "a", "--space", "encoder", "--vectors", "b"], "nothing reads words"),
        (["--loss", "huber"], "--loss knows no 'huber'. Fix: use softmax or smoothed or distance or element"),
        (["--recipe", "paper", "--embedding", "sum"], "--embedding knows no 'sum'. Fix: use dense or ends"),
        (["--embedding", "ends"], "--embedding is for --space codes, and the space is names"),
    ],
)
def test_what_the_command_does_not_understand(world, tmp_path, options, said):
    found = CliRunner().invoke(
        typer_app, ["train", "cdv", str(world / "articles.jsonl"), "-o", str(tmp_path / "x"), "--epochs", "1", *options]
    )
    assert isinstance(found.exception, CaprError)
    assert said in str(found.exception)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--vectors", "none.npz"], "there is no none.npz. Fix: name GloVe's text"),
        (["--vectors", "folder.npz"], "folder.npz is a folder, and no file of word vectors. Fix: name GloVe's text"),
        (["--vectors", "glove.txt.gz"], "glove.txt.gz is packed (gzip), and no text. Fix: unpack it"),
        (["--vectors", "wrong.txt"], "wrong.txt, line 2: 'b 1\\n' has 1 values instead of 2"),
        (["--base", "none"], "there is no encoder none. Fix: name the folder of"),
        (["--base", "folder.npz"], "folder.npz is no encoder: it has neither config.json nor model.onnx. Fix: "),
        (
            ["--base", "bare"],
            'no manifest.json. Fix: put tokenizer.json and a manifest.json with name, kind ("encoder"), ',
        ),
        (["--base", "optimum"], "optimum has model.onnx, but no manifest.json. Fix: "),
        (["--base", "ranker"], "has kind 'ranker'"),
        (["--base", "tiny", "--tune", "1"], "tiny has no config.json, without which it can neither be tuned"),
        (["--base", "untold"], "untold has no tokenizer. Fix: "),
        (["--space", "encoder", "--query-encoder", "none"], "there is no encoder none"),
        (
            ["--space", "encoder", "--query-encoder", "folder.npz"],
            "no model.onnx and no tokenizer.json and no manifest",
        ),
        (["--space", "encoder", "--query-encoder", "bare"], "has no manifest.json, which a query space needs. Fix: "),
        (["--space", "encoder", "--query-encoder", "ranker"], "has kind 'ranker'"),
    ],
)
def test_what_cannot_be_used_is_told_of_before_documents_are_read(tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("capr.cli.train_cdv._documents", lambda *given: pytest.fail("documents were read"))
    Path("folder.npz").mkdir()
    Path("glove.txt.gz").write_bytes(gzip.compress(b"the 1 2\n"))
    Path("wrong.txt").write_text("a 1 2\nb 1\n")
    reference.ranker_folder(Path("ranker"))
    reference.encoder_folder(Path("tiny"))
    for name in ("bare", "optimum"):
        reference.encoder_folder(Path(name))
        Path(name, "manifest.json").unlink()
    for name in ("untold", "optimum"):
        Path(name).mkdir(exist_ok=True)
        Path(name, "config.json").write_text('{"model_type": "bert"}')
    found = CliRunner().invoke(typer_app, ["train", "cdv", "a.jsonl", "-o", "out", "--device", "cpu", *options])
    assert isinstance(found.exception, CaprError), found.output
    assert said in str(found.exception)
    assert not Path("out").exists()


def test_a_base_that_cannot_be_loaded_is_told_of_before_words_are_learned(world, tmp_path, bert):
    shutil.copytree(bert, tmp_path / "base")
    halved(tmp_path / "base" / "model.safetensors")
    with pytest.raises(CaprError, match="base cannot be loaded"):
        train(labelled(world), OURS, Schedule(device="cpu"), tmp_path / "out", Sources(base=str(tmp_path / "base")))
    assert not (tmp_path / "out").exists()


def test_a_query_encoder_keeps_its_own_network_for_queries(world, tmp_path):
    own, plain = reference.encoder_folder(tmp_path / "own"), reference.encoder_folder(tmp_path / "plain")
    other = reference.encoder_folder(tmp_path / "other", seed=8)
    (own / "query.onnx").write_bytes((other / "model.onnx").read_bytes())
    recipe = replace(OURS, sizes=Sizes(8, 8), space="encoder", weights=(1.0, 1.0))
    known = labelled(world)
    few = Discourses(known.lessons[:8], known.entities, known.aspects)
    vectors, out = read_glove(world / "glove.txt"), tmp_path / "out"
    found = {}
    for folder in (own, plain):
        train(few, recipe, Schedule(epochs=1, device="cpu"), out, Sources(vectors, queries=str(folder)))
        found[folder] = load_discourse(out).query("gout", "")[:16] * math.sqrt(2)
        np.testing.assert_allclose(found[folder], OnnxEncoder(folder).query("gout"), atol=1e-5)
    assert not np.allclose(found[own], found[plain], atol=0.1)
    assert not (out / "queries" / "query.onnx").exists()  # of the encoder before


def test_a_language_model_reads_the_sentences_and_is_tuned(world, tmp_path, bert):
    recipe = replace(OURS, sizes=Sizes(8, 8, over="transformer"), dimensions=8)
    schedule = Schedule(epochs=1, batch=8, learning_rate=1e-3, device="cpu")
    sources = Sources(read_glove(world / "glove.txt"), str(bert), tuning=replace(schedule, learning_rate=1e-4))
    train(labelled(world), recipe, schedule, tmp_path, sources)
    model = load_discourse(tmp_path)
    assert model.manifest.sentences == ("encoder",)
    assert json.loads((tmp_path / "sentences" / "manifest.json").read_text())["pooling"] == "cls"
    spans, vectors = model.sentences(Document("x", "Gout pain. " * 500))
    assert vectors.shape == (500, 16)
    assert len(spans) == 500


@pytest.mark.shipped
def test_beside_an_encoder_words_are_told_apart(world, tmp_path):
    recipe, vectors = replace(OURS, sizes=Sizes(8, 8), dimensions=24), read_glove(world / "glove.txt")
    schedule = Schedule(epochs=1, batch=8, device="cpu")
    train(labelled(world), recipe, schedule, tmp_path, Sources(vectors, base="encoder"))
    model = load_discourse(tmp_path)
    assert model.manifest.sentences == ("encoder", "sketch")
    assert model.manifest.sketched == recipe.sketched
    assert model.sentences(Document("x", "Gout hurts. It swells."))[1].shape == (2, 48)
    (tmp_path / "words.npz").unlink()
    with pytest.raises(CaprError, match=r"no words\.npz.*Fix: "):
        load_discourse(tmp_path)


@pytest.mark.shipped
def test_the_encoder_that_ships_reads_sentences_and_queries_as_it_is(world, tmp_path):
    recipe = replace(OURS, sizes=Sizes(8, 8), space="encoder")
    schedule = Schedule(epochs=1, batch=8, learning_rate=1e-3, device="cpu")
    stages = set()
    train(labelled(world), recipe, schedule, tmp_path, Sources(base="encoder"), told=lambda stage, _: stages.add(stage))
    assert stages == {"sentences", "cdv"}
    for name in ("sentences", "queries"):
        assert (tmp_path / name / "model.onnx").read_bytes() == (shipped("encoder") / "model.onnx").read_bytes()
    assert not (tmp_path / "words.npz").exists()
    model = load_discourse(tmp_path)
    spans, vectors = model.sentences(Document("x", "Gout hurts. It is treated with rest."))
    assert vectors.shape == (len(spans), 768)
    query = model.query("gout", "treatment")
    assert np.linalg.norm(query) == pytest.approx(np.linalg.norm(recipe.weights) / np.sqrt(2), abs=1e-3)
