"""Training data about invented diseases, and untrained encoders."""

import io
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, LongformerConfig, LongformerModel, RobertaConfig, RobertaModel

from capr.annotate.query import Query
from capr.cli import app
from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs

DISEASES = ("asthma", "gout", "measles", "sepsis", "malaria", "rabies")
ASPECT_WORDS = {
    "symptom": ("Symptoms", "wheeze cough pain fever rash"),
    "treatment": ("Treatment", "tablets rest surgery drops"),
}
FILLER = ("the", "of", "is", "and", "in", "with", "often", "for", "days", "night")
DOCUMENTS = 4  # of each disease


def small_world() -> TrainingPairs:
    """Each disease in some documents, each document with a passage of each aspect."""
    passages, draws, positions = [], [], {}
    for number in range(DOCUMENTS):
        for disease in DISEASES:
            for aspect, (heading, words) in ASPECT_WORDS.items():
                phrases = [f"{word} {FILLER[(i * 3 + number) % 10]}" for i, word in enumerate(words.split())]
                text = " ".join([disease, *phrases[number % 3 :], FILLER[number], disease])
                positions[number, disease, aspect] = len(passages)
                passages.append(
                    LabelledPassage(f"{disease} {number}", disease.title(), heading, text, (disease,), (aspect,))
                )
    for (number, disease, aspect), place in positions.items():
        (other,) = (a for a in ASPECT_WORDS if a != aspect)
        following = DISEASES[(DISEASES.index(disease) + 1) % len(DISEASES)]
        negatives = (positions[number, disease, other], positions[number, following, aspect])
        heading = ASPECT_WORDS[aspect][0]
        draws.append(Draw(place, disease, aspect, (disease, disease.title()), heading, (), negatives))
    return TrainingPairs(passages, draws)


def known_words() -> list[str]:
    texts = [word for _, words in ASPECT_WORDS.values() for word in words.split()] + [
        *FILLER,
        *DISEASES,
        "?",
        ";",
        ":",
        "a",
    ]
    for heading, _ in ASPECT_WORDS.values():
        for wording in Query(entity="gout", aspect=heading).wordings():
            texts += [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(wording.lower())]
    return sorted({*texts, "symptoms", "treatment"})


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def make_base(folder: Path, kind: str = "bert", dropout: float = 0.0, **changes) -> Path:
    """Write the folder of an encoder."""
    begin = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if kind == "bert" else ["<s>", "<pad>", "</s>", "<unk>"]
    tokens = [*begin, *known_words()]
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(
        models.WordPiece({t: i for i, t in enumerate(tokens)}, unk_token=begin[1 if kind == "bert" else 3])
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if kind == "bert":
        tokenizer.post_processor = processors.TemplateProcessing(
            "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
        )
    else:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    options = {
        "vocab_size": len(tokens),
        **SIZES,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "max_position_embeddings": 64 if kind == "bert" else 66,
        "initializer_range": 0.1,
    } | changes
    if kind == "bert":
        model = BertModel(BertConfig(**options), add_pooling_layer=False)
    elif kind == "roberta":
        model = RobertaModel(RobertaConfig(**options, type_vocab_size=1), add_pooling_layer=False)
    else:
        options |= {"attention_window": [8], "num_hidden_layers": 1, "type_vocab_size": 1, "pad_token_id": 1}
        model = LongformerModel(LongformerConfig(**options), add_pooling_layer=False)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def new_base():
    return make_base


@pytest.fixture(scope="session")
def bert(tmp_path_factory) -> Path:
    return make_base(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def roberta(tmp_path_factory) -> Path:
    return make_base(tmp_path_factory.mktemp("roberta"), "roberta")


@pytest.fixture(scope="session")
def longformer(tmp_path_factory) -> Path:
    return make_base(tmp_path_factory.mktemp("longformer"), "longformer")


@pytest.fixture(scope="session")
def world() -> TrainingPairs:
    return small_world()


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """A second thread only slows down such small networks."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `capr train` with arguments."""

    def command(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        monkeypatch.setattr(sys, "argv", ["capr", "train", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            app()
        return Result(left.value.code or 0, *capsys.readouterr())

    return command
