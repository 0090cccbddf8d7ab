"""Training a tagger: real, tiny and seeded."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

from capr.documents import CaprError
from capr.evaluate.entities import evaluate
from capr.models.family import Schedule
from capr.models.layers import cut
from capr.models.tagger import distance, loss
from capr.models.tagger_family import TaggerFamily as Family
from capr.runtime.tagger import Tagger
from capr.supervise.corpora import Corpus
from capr.train import tagging as training

DISEASES = ["asthma", "gout", "measles", "sepsis"]
DRUGS = ["aspirin", "heparin", "insulin", "codeine"]
FRAMES = [["He", "has", "{}", "."], ["{}", "was", "treated", "."], ["No", "sign", "of", "{}", "today", "."]]


def conll(types: dict[str, list[str]]) -> str:
    lines = []
    for kind, words in types.items():
        for word in words:
            for frame in FRAMES:
                lines += [f"{word}\tB-{kind}" if place == "{}" else f"{place}\tO" for place in frame] + [""]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ner")
    for name, types in (("both", {"Disease": DISEASES, "Chemical": DRUGS}), ("diseases", {"Disease": DISEASES})):
        (folder / name).mkdir()
        (folder / name / "train.tsv").write_text(conll(types))
    return [folder / "both", folder / "diseases"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """An untrained encoder with two small layers."""
    folder = tmp_path_factory.mktemp("base")
    words = sorted({word.lower() for frame in FRAMES for word in frame if word != "{}"} | {*DISEASES, *DRUGS})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "[unused2]", *words]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def train(corpora, base, texts, out, progress=lambda report: None, architecture="transformer", **changes):
    """A tagger with few steps, layers and pieces."""
    schedule = {"epochs": 30, "batch": 4, "learning_rate": 3e-3} | {
        name: changes.pop(name) for name in ("epochs", "learning_rate") if name in changes
    }
    family = Family(
        **{
            "layers": 1,
            "adapt_steps": 2,
            "pieces": 32,
            "average": 0.9,
            "base": str(base or ""),
            **changes,
            "architecture": architecture,
        }
    )
    return training.train(corpora, family, Schedule(**schedule, patience=0, device="cpu"), out, texts, progress)


def train_tasty(corpora, out, progress=lambda report: None, **changes):
    return train(corpora, None, [], out, progress, "tasty", **changes)


def test_a_transformer_learns_and_tags_the_same_on_onnx_runtime(corpora, base, tmp_path):
    stages = []
    loaded = [Corpus.load(folder) for folder in corpora]
    texts = ["He has gout today. Aspirin was treated. " * 5]
    train(loaded, base, texts, tmp_path, lambda report: stages.append(report.stage))
    assert list(dict.fromkeys(stages)) == ["adapt", "teacher", "adapt-1", "tagger"]
    scores = evaluate(Tagger(tmp_path, "both"), corpora[0] / "train.tsv")
    assert scores["Disease"].f1 > 0.9
    assert scores["Chemical"].f1 > 0.9
    text = "He has asthma. Asthma was treated. No sign of asthma today."
    actual = [(tagged.span, tagged.type) for tagged in Tagger(tmp_path).tag(text)]
    assert actual == [((7, 13), "Disease"), ((15, 21), "Disease"), ((46, 52), "Disease")]
    small, whole = Tagger(tmp_path), Tagger(tmp_path, weights="model.fp32.onnx")
    words = [["He", "has", "gout", "."], ["heparin", "was", "treated"]]
    assert [[label for label, _ in s] for s in small.label(words)] == [
        [label for label, _ in s] for s in whole.label(words)
    ]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["guidelines"] == {"both": "[unused1]", "diseases": "[unused2]"}
    assert manifest["settings"]["layers"] == 1


def test_a_second_run_continues_after_the_last_stage(corpora, base, tmp_path):
    loaded = [Corpus.load(corpora[0])]
    texts = ["He has gout today. " * 20]

    def interrupted(report) -> None:
        if report.stage == "tagger":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(loaded, base, texts, tmp_path, interrupted, epochs=2)
    stages = []
    train(loaded, base, texts, tmp_path, lambda report: stages.append(report.stage), epochs=2)
    assert set(stages) == {"tagger"}
    with pytest.raises(CaprError, match=r"has a finished model already. Fix: name another folder with -o, or remove"):
        train(loaded, base, texts, tmp_path, epochs=3)
    for name in ("training.json", "model.onnx"):
        (tmp_path / name).unlink()
    again = []
    train(loaded, base, texts, tmp_path, lambda report: again.append(report.stage), epochs=3)
    assert set(again) == {"adapt", "teacher", "adapt-1", "tagger"}  # other settings, other stages


def test_a_teacher_needs_no_texts(corpora, base, tmp_path):
    stages = []
    loaded = [Corpus.load(corpora[0])]
    train(loaded, base, [], tmp_path, lambda report: stages.append(report.stage), epochs=2)
    assert list(dict.fromkeys(stages)) == ["teacher", "tagger"]


def test_tasty_learns(corpora, tmp_path):
    corpus = Corpus.load(corpora[0])
    loaded = [Corpus("both", corpus.train * 4, [])]  # trigrams count that occur ten times
    train_tasty(loaded, tmp_path, epochs=8)
    assert evaluate(Tagger(tmp_path), corpora[0] / "train.tsv")["Disease"].f1 > 0.9
    text = "He has gout."
    assert [actual.span.of(text) for actual in Tagger(tmp_path).tag(text)] == ["gout"]


def test_the_seed_decides_and_other_data_is_another_stage(corpora, tmp_path):
    corpus = Corpus.load(corpora[0])
    for folder in ("one", "two"):
        train_tasty([corpus], tmp_path / folder, epochs=1)
    weights = [torch.load(tmp_path / folder / "stages" / "tasty.pt")["weights"] for folder in ("one", "two")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    stages = []
    other = Corpus("both", corpus.train[:10], [])
    for name in ("training.json", "model.onnx"):
        (tmp_path / "one" / name).unlink()
    train_tasty([other], tmp_path / "one", lambda report: stages.append(report.stage), epochs=1)
    assert set(stages) == {"tasty"}


def test_a_corpus_without_an_entity_is_named(tmp_path):
    with pytest.raises(CaprError, match=r"empty has no entities\. Fix: "):
        train_tasty([Corpus("empty", [], [])], tmp_path)


def test_a_word_outside_may_be_of_a_type_that_the_corpus_leaves_out():
    allowed = torch.tensor([[[True, False, True]], [[False, True, False]], [[False, False, False]]])
    scores = torch.zeros(3, 1, 3, requires_grad=True)
    expected = -(np.log(2 / 3) + np.log(1 / 3)) / 2  # the third piece does not count
    assert loss(scores, allowed).item() == pytest.approx(expected)


def test_the_distance_to_a_teacher_is_least_where_the_student_agrees():
    taught = torch.tensor([[[2.0, 0.0, -1.0]]])
    counts = torch.ones(1, 1, dtype=torch.bool)
    same, other = distance(taught, taught, counts), distance(-taught, taught, counts)
    assert same < other


def test_an_encoder_is_cut_evenly(base):
    encoder = BertModel.from_pretrained(base, add_pooling_layer=False)
    smaller = cut(encoder, 1)
    assert len(smaller.encoder.layer) == 1
    assert len(encoder.encoder.layer) == 2


def test_a_folder_without_training_data_is_named(tmp_path):
    with pytest.raises(CaprError, match=r"has no train.tsv. Fix: "):
        Corpus.load(tmp_path)


def test_a_base_without_a_tokenizer_is_named(corpora, tmp_path):
    loaded = [Corpus.load(corpora[0])]
    with pytest.raises(CaprError, match=r"has no tokenizer.json. Fix: "):
        train(loaded, tmp_path, [], tmp_path / "out")


def test_a_loss_that_is_not_finite_stops_with_a_fix(corpora, base, tmp_path):
    loaded = [Corpus.load(corpora[0])]
    with pytest.raises(CaprError, match="Fix: lower the learning rate"):
        train(loaded, base, [], tmp_path, learning_rate=1e30, distil=False)


def test_an_interrupted_stage_continues_from_its_checkpoint(corpora, tmp_path):
    loaded = [Corpus.load(corpora[0])]

    def interrupted(report) -> None:
        if report.step > report.steps // 2:
            raise KeyboardInterrupt

    train_tasty(loaded, tmp_path / "whole", epochs=4)
    with pytest.raises(KeyboardInterrupt):
        train_tasty(loaded, tmp_path / "broken", interrupted, epochs=4)
    steps = []
    train_tasty(loaded, tmp_path / "broken", lambda report: steps.append((report.step, report.steps)), epochs=4)
    assert steps[0][0] == steps[0][1] // 2 + 1
    weights = [torch.load(tmp_path / name / "stages" / "tasty.pt")["weights"] for name in ("whole", "broken")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert [path.name for path in (tmp_path / "broken" / "stages").iterdir()] == ["tasty.pt"]


def test_a_tagger_has_a_card(corpora, tmp_path):
    train_tasty([Corpus.load(corpora[0])], tmp_path, epochs=1)
    facts = json.loads((tmp_path / "training.json").read_text())
    assert (facts["kind"], facts["data"]) == ("tagger", {"both": "24 sentences"})
    assert facts["settings"]["epochs"] == 1
    assert json.loads((tmp_path / "manifest.json").read_text())["kind"] == "tagger"
