"""Training a tagger: real, tiny and seeded."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

from capr.annotate.tagger import Tagger
from capr.documents import CaprError
from capr.evaluate.entities import evaluate
from capr.models.layers import cut
from capr.models.tagger import distance, loss
from capr.train import tagger as training
from capr.train.corpus import Corpus

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
    """An encoder of two small layers that has learned nothing."""
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
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def settings(**changes) -> training.Settings:
    given = {
        "layers": 1,
        "adapt_steps": 2,
        "epochs": 30,
        "batch": 4,
        "learning_rate": 3e-3,
        "pieces": 32,
        "average": 0.9,
    }
    return training.Settings(**{**given, **changes}, device="cpu")


def test_a_transformer_learns_and_tells_the_same_on_onnx_runtime(corpora, base, tmp_path):
    stages = []
    loaded = [Corpus.load(folder) for folder in corpora]
    texts = ["He has gout today. Aspirin was treated. " * 5]
    training.train_transformer(loaded, base, texts, tmp_path, settings(), lambda stage, *_: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["adapt", "teacher", "adapt-1", "tagger"]
    scores = evaluate(Tagger(tmp_path, "both"), corpora[0] / "train.tsv")
    assert scores["Disease"].f1 > 0.9
    assert scores["Chemical"].f1 > 0.9
    text = "He has asthma. Asthma was treated. No sign of asthma today."
    found = [(tagged.span, tagged.type) for tagged in Tagger(tmp_path).tag(text)]
    assert found == [((7, 13), "Disease"), ((15, 21), "Disease"), ((46, 52), "Disease")]
    small, whole = Tagger(tmp_path), Tagger(tmp_path, weights="model.fp32.onnx")
    words = [["He", "has", "gout", "."], ["heparin", "was", "treated"]]
    assert [[label for label, _ in s] for s in small.label(words)] == [
        [label for label, _ in s] for s in whole.label(words)
    ]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["guidelines"] == {"both": "[unused1]", "diseases": "[unused2]"}
    assert manifest["settings"]["layers"] == 1


def test_a_second_run_goes_on_after_the_last_stage(corpora, base, tmp_path):
    loaded = [Corpus.load(corpora[0])]
    texts = ["He has gout today. " * 20]

    def interrupted(stage: str, *_: object) -> None:
        if stage == "tagger":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train_transformer(loaded, base, texts, tmp_path, settings(epochs=2), interrupted)
    stages = []
    training.train_transformer(
        loaded, base, texts, tmp_path, settings(epochs=2), lambda stage, *_: stages.append(stage)
    )
    assert set(stages) == {"tagger"}
    again = []
    training.train_transformer(loaded, base, texts, tmp_path, settings(epochs=3), lambda stage, *_: again.append(stage))
    assert set(again) == {"adapt", "teacher", "adapt-1", "tagger"}  # other settings, other stages


def test_a_teacher_needs_no_texts(corpora, base, tmp_path):
    stages = []
    loaded = [Corpus.load(corpora[0])]
    training.train_transformer(loaded, base, [], tmp_path, settings(epochs=2), lambda stage, *_: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["teacher", "tagger"]


def test_tasty_learns(corpora, tmp_path):
    corpus = Corpus.load(corpora[0])
    loaded = [Corpus("both", corpus.train * 4, [])]  # trigrams count that occur ten times
    training.train_tasty(loaded, tmp_path, settings(epochs=8), lambda *_: None)
    assert evaluate(Tagger(tmp_path), corpora[0] / "train.tsv")["Disease"].f1 > 0.9
    text = "He has gout."
    assert [found.span.of(text) for found in Tagger(tmp_path).tag(text)] == ["gout"]


def test_the_seed_decides_and_other_data_is_another_stage(corpora, tmp_path):
    corpus = Corpus.load(corpora[0])
    for folder in ("one", "two"):
        training.train_tasty([corpus], tmp_path / folder, settings(epochs=1), lambda *_: None)
    kept = [torch.load(tmp_path / folder / "stages" / "tasty.pt")["weights"] for folder in ("one", "two")]
    assert all(torch.equal(kept[0][name], kept[1][name]) for name in kept[0])
    stages = []
    other = Corpus("both", corpus.train[:10], [])
    training.train_tasty([other], tmp_path / "one", settings(epochs=1), lambda stage, *_: stages.append(stage))
    assert stages == ["tasty"]


def test_a_corpus_without_an_entity_is_named(tmp_path):
    with pytest.raises(CaprError, match=r"there is no entity in empty. Fix: "):
        training.train_tasty([Corpus("empty", [], [])], tmp_path, settings(), lambda *_: None)


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
        training.train_transformer(loaded, tmp_path, [], tmp_path / "out", settings(), lambda *_: None)


def test_a_loss_that_is_no_number_stops_with_the_remedy(corpora, base, tmp_path):
    loaded = [Corpus.load(corpora[0])]
    with pytest.raises(CaprError, match="Fix: lower the learning rate"):
        training.train_transformer(
            loaded, base, [], tmp_path, settings(learning_rate=1e30, distil=False), lambda *_: None
        )
