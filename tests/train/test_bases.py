"""Loading of bases, and their inputs."""

import re
import shutil

import huggingface_hub
import pytest
import torch
from tokenizers import Tokenizer
from transformers import BertModel

from capr.documents import CaprError
from capr.models.bases import (
    BUILT_IN,
    HUB_NAME,
    MARKERS,
    PieceTokenizer,
    add_markers,
    load_classifier,
    load_encoder,
    load_tokenizer,
    weights_of,
)
from capr.models.families import family
from capr.supervise.pairs import TrainingPairs

TEXTS = ["Gout is the pain", "", "asthma and malaria ; rabies with fever for days", "unknowable", "a"]
PAIRS = [
    ("gout ?", "pain and rash"),
    ("", "fever"),
    ("asthma", ""),
    ("", ""),
    ("a a", "a"),
    ("measles of the night", "a"),
]


@pytest.fixture(params=["bert", "roberta", "longformer"])
def base(request):
    return request.getfixturevalue(request.param)


def own(base, texts, pieces, strategy="longest_first"):
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.enable_truncation(pieces, strategy=strategy)
    padding = 0 if tokenizer.token_to_id("[PAD]") == 0 else 1
    tokenizer.enable_padding(pad_id=padding)
    encodings = tokenizer.encode_batch(texts)
    return {
        "input_ids": [encoding.ids for encoding in encodings],
        "attention_mask": [encoding.attention_mask for encoding in encodings],
        "token_type_ids": [encoding.type_ids for encoding in encodings],
    }


@pytest.mark.parametrize("pieces", [4, 6, 64])
def test_texts_are_read_as_by_their_own_tokenizer(base, pieces):
    tokenizer = PieceTokenizer(load_tokenizer(str(base)), load_encoder(str(base)), "cpu")
    actual, expected = tokenizer.read(TEXTS, pieces), own(base, TEXTS, pieces)
    assert {name: tensor.tolist() for name, tensor in actual.items()} == {name: expected[name] for name in actual}


@pytest.mark.parametrize("pieces", [12, 64])
def test_pairs_are_read_as_by_their_own_tokenizer(base, pieces):
    tokenizer = PieceTokenizer(load_tokenizer(str(base)), load_encoder(str(base)), "cpu")
    pairs = [*PAIRS, ("gout", "pain " * 30)]
    actual, expected = tokenizer.read(pairs, pieces), own(base, pairs, pieces, "only_second")
    assert {name: tensor.tolist() for name, tensor in actual.items()} == {name: expected[name] for name in actual}


def test_only_a_model_with_token_types_gets_them(bert, roberta):
    names = {
        base: PieceTokenizer(load_tokenizer(str(base)), load_encoder(str(base)), "cpu").names
        for base in (bert, roberta)
    }
    assert names[bert] == ("input_ids", "attention_mask", "token_type_ids")
    assert names[roberta] == ("input_ids", "attention_mask")


def test_the_second_text_of_a_pair_is_shortened(bert):
    tokenizer = PieceTokenizer(load_tokenizer(str(bert)), load_encoder(str(bert)), "cpu")
    (ids,) = tokenizer.read([("gout is often", "pain and rash in the night")], 8)["input_ids"].tolist()
    tokens = [tokenizer.base_tokenizer.id_to_token(i) for i in ids]
    assert tokens == ["[CLS]", "gout", "is", "often", "[SEP]", "pain", "and", "[SEP]"]


def test_no_text_is_longer_than_the_model_can_read(base):
    model = load_encoder(str(base)).eval()
    tokenizer = PieceTokenizer(load_tokenizer(str(base)), model, "cpu")
    assert tokenizer.longest == 64
    for texts in (["gout " * 500], [("gout " * 500, "pain " * 500)]):
        inputs = tokenizer.read(texts, 4096)
        assert inputs["input_ids"].shape == (1, 64)
        with torch.no_grad():
            assert model(**inputs).last_hidden_state.isfinite().all()


def test_parts_of_similar_length_can_be_put_back_in_order(bert):
    tokenizer = PieceTokenizer(load_tokenizer(str(bert)), load_encoder(str(bert)), "cpu")
    for texts in (TEXTS, PAIRS):
        parts, back = tokenizer.read_parts(texts, 16, size=2)
        rows = [
            row[mask.bool()].tolist()
            for p in parts
            for row, mask in zip(p["input_ids"], p["attention_mask"], strict=True)
        ]
        whole = tokenizer.read(texts, 16)
        expected = [
            row[mask.bool()].tolist() for row, mask in zip(whole["input_ids"], whole["attention_mask"], strict=True)
        ]
        assert [rows[i] for i in back] == expected
        assert [len(row) for row in rows] == sorted(len(row) for row in rows)


def test_a_passage_is_read_between_its_context(longformer):
    tokenizer = PieceTokenizer(load_tokenizer(str(longformer)), load_encoder(str(longformer)), "cpu")
    inputs = tokenizer.read_windows([("the of is", "gout pain", "and in with"), ("", "fever", "")], 8)
    tokens = [[tokenizer.base_tokenizer.id_to_token(i) for i in row] for row in inputs["input_ids"].tolist()]
    assert tokens == [
        ["<s>", "of", "is", "gout", "pain", "and", "in", "</s>"],
        ["<s>", "fever", "</s>", *["<pad>"] * 5],
    ]
    assert inputs["inside"].tolist() == [[0, 0, 0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1] * 8, [1, 1, 1, 0, 0, 0, 0, 0]]


def test_markers_are_one_piece_each_and_begin_as_the_mean(bert):
    encoder, tokenizer = load_encoder(str(bert)), load_tokenizer(str(bert))
    mean = encoder.get_input_embeddings().weight.mean(0).detach().clone()
    before = tokenizer.get_vocab_size()
    add_markers(encoder, tokenizer)
    assert encoder.get_input_embeddings().weight.shape[0] == before + 2
    tokenizer = PieceTokenizer(tokenizer, encoder, "cpu")
    for place, marker in enumerate(MARKERS):
        (ids,) = tokenizer.read([f"{marker}gout pain"], 16)["input_ids"].tolist()
        assert [tokenizer.base_tokenizer.id_to_token(i) for i in ids] == ["[CLS]", marker, "gout", "pain", "[SEP]"]
        weight = encoder.get_input_embeddings().weight[before + place].detach()
        assert torch.allclose(weight, mean, atol=0.05)
        assert not torch.equal(weight, encoder.get_input_embeddings().weight[0].detach())


def test_an_encoder_has_no_pooler_and_a_classifier_one_output(base):
    assert getattr(load_encoder(str(base)), "pooler", None) is None
    assert load_classifier(str(base)).config.num_labels == 1


def test_a_classifier_of_three_labels_becomes_one_of_one(bert, tmp_path):
    classifier = load_classifier(str(bert))
    wide = type(classifier)(type(classifier.config)(**{**classifier.config.to_dict(), "num_labels": 3}))
    wide.save_pretrained(tmp_path)
    narrow = load_classifier(str(tmp_path))
    assert narrow.classifier.weight.shape == (1, 32)
    expected = wide.bert.embeddings.word_embeddings.weight
    assert torch.equal(narrow.bert.embeddings.word_embeddings.weight, expected)


def test_a_base_without_a_tokenizer_is_named(bert, tmp_path):
    folder = tmp_path / "base"
    shutil.copytree(bert, folder, ignore=shutil.ignore_patterns("tokenizer.json"))
    with pytest.raises(CaprError, match=rf"^{re.escape(str(folder))} has no tokenizer. Fix: "):
        load_tokenizer(str(folder))


def test_a_base_that_does_not_exist_is_named(tmp_path):
    folder = str(tmp_path / "nothing")
    for load in (load_encoder, load_classifier):
        with pytest.raises(CaprError, match=rf"^{re.escape(folder)} cannot be loaded .* Fix: "):
            load(folder)
    with pytest.raises(CaprError, match=rf"^{re.escape(folder)} has no tokenizer. Fix: "):
        load_tokenizer(folder)


@pytest.mark.parametrize("base", ["nobase", "./no/base", "/no/base", "no/base/there"])
def test_a_missing_folder_is_not_looked_up_on_the_hub(base):
    with pytest.raises(CaprError) as error:
        weights_of(base, "encoder")
    fix = "name a folder, or a checkpoint with its owner, such as BAAI/bge-small-en-v1.5"
    assert str(error.value) == f"there is no folder {base}. Fix: {fix}."


@pytest.mark.parametrize("name", ["bi", "cross", "poly", "late", "reader"])
@pytest.mark.parametrize("base", ["encoder", "ranker", "reader"])
def test_every_built_in_model_is_a_base_of_every_family(name, base, bert, tmp_path, monkeypatch):
    shutil.copytree(bert, tmp_path / base)
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))
    monkeypatch.chdir(tmp_path.parent)
    kind = family(name)(base=base)
    assert weights_of(base, *BUILT_IN) == str(tmp_path / base)
    objective = kind.objective("cpu") if name == "reader" else kind.objective(TrainingPairs([], []), "cpu")
    assert sum(parameter.numel() for parameter in objective.model.parameters()) > 1000


def test_an_unreachable_hub_is_asked_once_and_in_silence(monkeypatch, capfd):
    requests = []

    class Unreachable:
        def head(self, address, timeout):
            requests.append(address)
            raise OSError("no network")

    monkeypatch.setattr("huggingface_hub.get_session", Unreachable)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(CaprError, match="and the Hugging Face hub cannot be reached"):
        load_encoder("nobody/nothing")
    assert len(requests) == 1
    assert capfd.readouterr() == ("", "")
    assert huggingface_hub.constants.HF_HUB_OFFLINE is False


def test_a_checkpoint_with_its_owner_is_a_base():
    assert weights_of("BAAI/bge-small-en-v1.5", "encoder") == "BAAI/bge-small-en-v1.5"


@pytest.mark.parametrize("load", [load_encoder, load_classifier, load_tokenizer])
def test_a_hub_that_cannot_be_reached_is_named(load, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CaprError) as error:
        load("nobody/nothing")
    assert str(error.value) == (
        "there is no folder nobody/nothing, and the Hugging Face hub cannot be reached. "
        "Fix: name a folder that has a copy of the checkpoint, or connect to the internet."
    )


def test_a_base_without_weights_is_named(bert, tmp_path):
    folder = tmp_path / "base"
    shutil.copytree(bert, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(CaprError, match=r"cannot be loaded .* Fix: "):
        load_encoder(str(folder))


def test_the_weights_of_a_base_are_those_of_its_folder(bert):
    expected = BertModel.from_pretrained(bert, add_pooling_layer=False).state_dict()
    actual = load_encoder(str(bert)).state_dict()
    assert all(torch.equal(expected[name], actual[name]) for name in expected)


@pytest.mark.parametrize("name", ["bi", "cross", "poly", "late", "reader"])
def test_the_example_of_a_command_names_the_owner_of_its_base(name):
    (base,) = re.findall(r"--base (\S+)", family(name).__doc__)
    assert HUB_NAME.fullmatch(base)
