"""Tiny models for tests: an encoder and a ranker of letters, and a discourse model of words."""

import json
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from capr.runtime.identity import EncoderIdentity
from capr.segment import sections
from capr.segment import sentences as cut
from capr.testing.matching import words_of

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = {piece: i for i, piece in enumerate((*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS)))}
DIMENSIONS = 16


def embeddings(columns=DIMENSIONS, seed=7):
    return np.random.default_rng(seed).normal(size=(len(VOCABULARY), columns)).astype(np.float32)


def tokenizer():
    wordpiece = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer()
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])]
    wordpiece.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", special)
    return wordpiece


def encoder_folder(folder: Path, seed=7, **manifest):
    """Save an encoder that adds the sum of all vectors of a text to the vector of each word piece."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["pieces"]),
        helper.make_node("Cast", ["attention_mask"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "two"], ["mask"]),
        helper.make_node("Mul", ["pieces", "mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "one"], ["total"], keepdims=1),
        helper.make_node("Add", ["pieces", "total"], ["states"]),
    ]
    constants = {"table": embeddings(seed=seed), "two": np.array([2]), "one": np.array([1])}
    output = helper.make_tensor_value_info("states", TensorProto.FLOAT, ["texts", "length", DIMENSIONS])
    _save(folder, nodes, constants, ("input_ids", "attention_mask"), output)
    return _write_manifest(folder, {"name": "tiny", "kind": "encoder", "dimensions": DIMENSIONS, **manifest})


def late_folder(folder: Path, seed=7, dimensions=8, **manifest):
    """Save an encoder with the sum of all vectors of a text, and a unit vector for each word piece."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["gathered"]),
        helper.make_node("Cast", ["attention_mask"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "two"], ["mask"]),
        helper.make_node("Mul", ["gathered", "mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "one"], ["vectors"], keepdims=0),
        helper.make_node("Gather", ["short", "input_ids"], ["pieces"]),
        helper.make_node("LpNormalization", ["pieces"], ["word_pieces"], axis=-1, p=2),
    ]
    constants = {
        "table": embeddings(seed=seed),
        "short": embeddings(dimensions, seed + 1),
        "two": np.array([2]),
        "one": np.array([1]),
    }
    outputs = [
        helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", DIMENSIONS]),
        helper.make_tensor_value_info("word_pieces", TensorProto.FLOAT, ["texts", "length", dimensions]),
    ]
    _save(folder, nodes, constants, ("input_ids", "attention_mask"), *outputs)
    sizes = {"dimensions": DIMENSIONS, "piece_dimensions": dimensions, "min_query_pieces": 6}
    fields = {"name": "late", "kind": "encoder", **sizes}
    return _write_manifest(folder, {**fields, **manifest})


def ranker_folder(folder: Path, **manifest):
    """Save a ranker that sums one number for each word piece; the word pieces of the passage count twice."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["pieces"]),
        helper.make_node("Add", ["token_type_ids", "one"], ["times"]),
        helper.make_node("Mul", ["times", "attention_mask"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["floats", "two"], ["mask"]),
        helper.make_node("Mul", ["pieces", "mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "one"], ["logits"], keepdims=0),
    ]
    constants = {"table": embeddings(1), "two": np.array([2]), "one": np.array([1])}
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["texts", 1])
    _save(folder, nodes, constants, ("input_ids", "attention_mask", "token_type_ids"), output)
    return _write_manifest(folder, {"name": "tiny", "kind": "ranker", **manifest})


def _save(folder, nodes, constants, inputs, *outputs):
    folder.mkdir(parents=True, exist_ok=True)
    tensors = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "length"]) for name in inputs]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", tensors, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    tokenizer().save(str(folder / "tokenizer.json"))


def _write_manifest(folder, manifest):
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


class WordDiscourse:
    """A discourse model of random vectors for words, which records the documents that it reads.

    The entity half of a sentence's vector comes from the title and the sentence, the aspect half from its heading and
    the sentence.
    """

    def __init__(self, name="word-cdv", half=32, folder="/models/word-cdv"):
        self.identity = EncoderIdentity(name, f"{zlib.crc32(name.encode()):08x}" * 4, 2 * half, folder)
        self.threshold = 0.3
        self.read = []

    def sentences(self, document):
        self.read.append(document.id)
        parts = sections(document)
        spans = cut(document.text)
        rows = []
        for span in spans:
            heading = next((part.heading or "" for part in parts if part.span.covers(span)), "")
            rows.append(self.query(f"{document.title} {document[span]}", f"{heading} {heading} {document[span]}"))
        return spans, np.array(rows, np.float32).reshape(-1, self.identity.dimensions)

    def query(self, entity, aspect):
        return np.concatenate([self._half(entity), self._half(aspect)])

    def _half(self, text):
        total = np.zeros(self.identity.dimensions // 2)
        for word in words_of(text):
            total += np.random.default_rng(zlib.crc32(word.encode())).normal(size=len(total))
        return (total / max(np.linalg.norm(total), 1e-9) / np.sqrt(2)).astype(np.float32)
