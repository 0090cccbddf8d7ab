"""What the index is compared with: an engine in memory that looks at everything, and tiny models."""

import hashlib
import json
import math
import os
import re
import unicodedata
import zlib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from capr.annotate import Mention
from capr.annotate.context import Cue
from capr.documents import CaprError, Document, Span
from capr.index import Entry, Found, Grain, Patient, Prepared, Sentences, Stats, Stored
from capr.index.filters import ASPECT, DAY, ID
from capr.index.protocol import EVERYTHING, EncoderIdentity
from capr.segment import passages, sections
from capr.segment import sentences as cut

ENCODER = EncoderIdentity("tiny", "0123", 8, "/models/tiny")
DISCOURSE = EncoderIdentity("tiny-cdv", "4567", 8, "/models/tiny-cdv")


# --- what is put in ---


def mention(text, words, concept, *flags):
    """A mention of a concept by those words, with properties."""
    begin = text.index(words)
    cues = {flag: Cue(flag, "no", None, Span(0, len(text))) for flag in flags}
    return Mention(Span(begin, begin + len(words)), concept.kind, concept, ("vocabulary",), cues)


def prepare(document, mentions=(), vectors=None, max_words=250, sentences=None):
    entries = []
    for passage in passages(document, max_words):
        inside = tuple(one for one in mentions if passage.span.covers(one.span))
        aspect = (passage.heading or "").lower()
        entries.append(Entry(passage, document[passage.span], aspect, inside))
    whole = json.dumps(document.as_json(), sort_keys=True).encode()
    content = hashlib.sha256(f"{document.title} {document.text}".encode()).digest()
    return Prepared(document, hashlib.sha256(whole).digest(), content, entries, vectors, sentences)


def sentences(*vectors):
    """Sentences of a passage with these vectors, ten characters each."""
    spans = tuple(Span(10 * i, 10 * i + 9) for i in range(len(vectors)))
    return Sentences(spans, np.array(vectors, np.float32).reshape(-1, DISCOURSE.dimensions))


def unit(*values):
    vector = np.zeros(ENCODER.dimensions, np.float32)
    vector[: len(values)] = values
    return vector / np.float32(np.linalg.norm(vector))


# --- the engine ---


def words_of(text):
    folded = unicodedata.normalize("NFKD", text.lower())
    found = re.findall(r"[^\W_]+", "".join(c for c in folded if not unicodedata.combining(c)))
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found]


def values_of(document, name):
    """The values of a field of a document, as they are compared."""
    if name == ID:
        return {document.id}
    plain = name[1:] if name.startswith("##") else name  # a # more tells it from the names of capr itself
    values = [value for key, value in document.metadata.items() if key.strip().casefold() == plain]
    listed = [one for value in values for one in (value if isinstance(value, list | tuple) else [value])]
    found = {str(one).strip() for one in listed if one is not None}
    return {one if name == "patient" else one.casefold() for one in found if one}


def day_of(document):
    match = re.match(r"\d{4}(-\d\d){0,2}", str(document.metadata.get("date", "")))
    return (match[0] + "-01-01")[:10] if match else ""


def passes(filters, document, entry=None):
    """Whether a passage passes; without one, whether the document does."""
    for condition in filters.conditions:
        of_passage = condition.name == ASPECT
        if of_passage and entry is None:
            continue
        having = {entry.aspect} if of_passage else values_of(document, condition.name)
        if bool(having & condition.values) == condition.exclude:
            return False
    day = day_of(document)
    if not day and (filters.since or filters.until or filters.days):
        return False
    if (filters.since and day < filters.since) or (filters.until and day > filters.until):
        return False
    if day and any(first <= day <= last for first, last in filters.not_days):
        return False
    if filters.days and not any(first <= day <= last for first, last in filters.days):
        return False
    if not filters.entities or entry is None:
        return True
    return any(
        m.concept is not None and m.concept.code in filters.entities and not filters.without & m.context.keys()
        for m in entry.mentions
    )


class Kept:
    def __init__(self, prepared, first):
        self.prepared, self.first = prepared, first
        self.document = Document(
            prepared.document.id,
            prepared.document.text,
            prepared.document.title,
            json.loads(json.dumps(prepared.document.metadata)),
            prepared.document.annotations,
        )
        self.vectors = dict(enumerate(prepared.vectors or (), first))
        self.sentences = dict(enumerate(prepared.sentences or (), first))

    def of(self, grain):
        """The vectors of each passage."""
        if grain is Grain.PASSAGES:
            return {number: vector[None] for number, vector in self.vectors.items()}
        return {number: some.vectors for number, some in self.sentences.items()}


class ReferenceIndex:
    """Keeps everything in memory and looks at all of it."""

    def __init__(self):
        self._kept, self._next, self._encoders, self._writing = {}, 1, {}, False

    @contextmanager
    def writing(self):
        if self._writing:
            raise CaprError(f"it is being written by process {os.getpid()}. Fix: wait.")
        self._writing = True
        try:
            yield ReferenceWriter(self)
        finally:
            self._writing = False

    def _all(self):
        for kept in self._kept.values():
            for number, entry in enumerate(kept.prepared.entries, kept.first):
                yield number, kept, entry

    def _fields(self, kept, entry):
        return {
            "text": words_of(entry.text),
            "heading": words_of(entry.passage.heading or ""),
            "title": words_of(kept.document.title),
            "entities": [m.concept.code for m in entry.mentions if m.concept],
            "aspect": [entry.aspect],
        }

    def _terms(self, clause, field):
        return [clause.words] if field in ("entities", "aspect") else words_of(clause.words)

    def _matches(self, clause, fields):
        terms = {field: self._terms(clause, field) for field in clause.fields}
        return any(_count(fields[field], wanted) for field, wanted in terms.items() if wanted)

    def _asked(self, clauses):
        return [clause for clause in clauses if any(self._terms(clause, field) for field in clause.fields)]

    def _has_what_it_must(self, clauses, fields):
        return all(
            self._matches(clause, fields) == (clause.occur == "must") for clause in clauses if clause.occur != "should"
        )

    def lexical(self, clauses, k, filters):
        clauses = self._asked(clauses)
        every = {number: self._fields(kept, entry) for number, kept, entry in self._all()}
        occurs = {clause.occur for clause in clauses}
        needs_one = not clauses or ("should" in occurs and "must" not in occurs)
        found = []
        for number, kept, entry in self._all():
            fields = every[number]
            if not passes(filters, kept.document, entry) or not self._has_what_it_must(clauses, fields):
                continue
            if needs_one and not any(self._matches(c, fields) for c in clauses if c.occur == "should"):
                continue
            score = sum(
                weight * self._bm25(self._terms(clause, field), field, fields, every)
                for clause in clauses
                if clause.occur != "not"
                for field, weight in clause.fields.items()
            )
            found.append(Found(number, score))
        return sorted(found, key=lambda f: (-f.score, f.number))[:k]

    def _bm25(self, terms, field, fields, every):
        count = _count(fields[field], terms)
        if not count:
            return 0.0
        total = len(every)
        mean = sum(len(one[field]) for one in every.values()) / total
        rarity = 0.0
        for term in terms:
            having = sum(term in one[field] for one in every.values())
            rarity += math.log(1 + (total - having + 0.5) / (having + 0.5))
        return rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(fields[field]) / mean))

    def dense(self, vector, k, filters, clauses=(), grain=Grain.PASSAGES):
        found = [
            Found(number, float(np.mean([one @ vector for one in kept.of(grain)[number]])))
            for number, kept, entry in self._all()
            if len(kept.of(grain).get(number, ()))
            and passes(filters, kept.document, entry)
            and self._has_what_it_must(self._asked(clauses), self._fields(kept, entry))
        ]
        return sorted(found, key=lambda f: (-f.score, f.number))[:k]

    def rarity(self, words, filters=EVERYTHING):
        every = [set(words_of(entry.text)) for _, kept, entry in self._all() if passes(filters, kept.document, entry)]
        counts = [sum(word in one for one in every) for word in words]
        return [math.log(1 + (len(every) - n + 0.5) / (n + 0.5)) if n else 0.0 for n in counts]

    def stems(self, words):
        return ["".join(words_of(word)[:1]) for word in words]

    def digests(self, ids):
        return {id: self._kept[id].prepared.digest for id in ids if id in self._kept}

    def vectors_of(self, content):
        for kept in self._kept.values():
            if kept.prepared.content == content and len(kept.vectors) == len(kept.prepared.entries):
                return [kept.vectors[number] for number in sorted(kept.vectors)]
        return None

    def sentences_of(self, content):
        for kept in self._kept.values():
            if kept.prepared.content == content and len(kept.sentences) == len(kept.prepared.entries):
                return [kept.sentences[number] for number in sorted(kept.sentences)]
        return None

    def sentences(self, numbers):
        every = {number: some for kept in self._kept.values() for number, some in kept.sentences.items()}
        return {number: every[number] for number in numbers if number in every}

    def passages_in(self, id):
        return list(self.passages([number for number, kept, _ in self._all() if kept.document.id == id]).values())

    def passages(self, numbers):
        return {
            number: Stored(number, entry, kept.document.title, kept.document.metadata)
            for number, kept, entry in self._all()
            if number in numbers
        }

    def neighbours(self, number, distance):
        for kept in self._kept.values():
            last = kept.first + len(kept.prepared.entries) - 1
            if kept.first <= number <= last:
                near = range(max(kept.first, number - distance), min(last, number + distance) + 1)
                return [one for n, one in self.passages(near).items() if n != number]
        return []

    def without_vectors(self, limit, after=0, grain=Grain.PASSAGES):
        numbers = [number for number, kept, _ in self._all() if number > after and number not in kept.of(grain)]
        return list(self.passages(numbers[:limit]).values())

    def document(self, id):
        return self._kept[id].document if id in self._kept else None

    def documents(self, filters=None):
        chosen = None if not filters else set(self.ids(filters))
        return (kept.document for id, kept in self._kept.items() if chosen is None or id in chosen)

    def ids(self, filters):
        of_passages = filters.entities or any(condition.name == ASPECT for condition in filters.conditions)
        return [
            id
            for id, kept in self._kept.items()
            if passes(filters, kept.document)
            and (not of_passages or any(passes(filters, kept.document, entry) for entry in kept.prepared.entries))
        ]

    def values(self, name, limit, filters=EVERYTHING):
        passing = [self._kept[id] for id in self.ids(filters)]
        if name == ASPECT:
            having = [
                {e.aspect for e in kept.prepared.entries if e.aspect and passes(filters, kept.document, e)}
                for kept in passing
            ]
        elif name == DAY:
            having = [{day_of(kept.document)} - {""} for kept in passing]
        else:
            having = [values_of(kept.document, name) for kept in passing]
        counts = Counter(value for values in having for value in values)
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def groups(self, numbers, by):
        every = {number: kept.document for number, kept, _ in self._all() if number in numbers}
        return {n: d.id if by == "document" else str(d.metadata.get("patient") or d.id) for n, d in every.items()}

    def spelled(self, name, values, filters=EVERYTHING):
        found = {}
        for id in self.ids(filters):
            for key, value in self._kept[id].document.metadata.items():
                if key.casefold() == name and str(value).strip().casefold() in values:
                    found.setdefault(str(value).strip().casefold(), str(value).strip())
        return found

    def patients(self, filters=EVERYTHING):
        found = {}
        for id in self.ids(filters):
            for patient in values_of(self._kept[id].document, "patient"):
                found.setdefault(patient, []).append(day_of(self._kept[id].document))
        days = {patient: sorted(filter(None, some)) or [""] for patient, some in found.items()}
        return [Patient(one, len(found[one]), days[one][0], days[one][-1]) for one in sorted(found)]

    def mentioned(self, filters=EVERYTHING):
        passing = (entry for _, kept, entry in self._all() if passes(filters, kept.document, entry))
        return {m.concept.code for entry in passing for m in entry.mentions if m.concept}

    def passing(self, numbers, filters):
        return {n for n, kept, entry in self._all() if n in numbers and passes(filters, kept.document, entry)}

    def notices(self, grain=Grain.PASSAGES, filters=EVERYTHING):
        return []

    def encoder(self, grain=Grain.PASSAGES):
        return self._encoders.get(grain)

    def stats(self, filters=EVERYTHING):
        every = [self._kept[id] for id in self.ids(filters)]
        entries = [entry for kept in every for entry in kept.prepared.entries]
        return Stats(
            documents=len(every),
            patients=len({value for kept in every for value in values_of(kept.document, "patient")}),
            passages=len(entries),
            characters=sum(len(kept.document.text) for kept in every),
            mentions=sum(len(entry.mentions) for entry in entries),
            vectors=sum(len(kept.vectors) for kept in every),
            encoder=self.encoder(),
            sentences=sum(len(some.spans) for kept in every for some in kept.sentences.values()),
            passages_with_sentences=sum(len(kept.sentences) for kept in every),
            discourse=self.encoder(Grain.SENTENCES),
            disk={},
            fields=dict(Counter(n for kept in every for n in kept.document.metadata if values_of(kept.document, n))),
        )

    def close(self):
        self._kept = {}


class ReferenceWriter:
    def __init__(self, index):
        self._index, self._pending = index, []

    def add(self, prepared):
        self._pending.append(lambda: self._add(prepared))

    def _add(self, prepared):
        index = self._index
        index._kept.pop(prepared.document.id, None)
        index._kept[prepared.document.id] = Kept(prepared, index._next)
        index._next += len(prepared.entries)

    def remove(self, ids):
        wanted = set(ids)
        self._pending.append(lambda: [self._index._kept.pop(id, None) for id in wanted])
        return len(wanted & self._index._kept.keys())

    def set_encoder(self, encoder, grain=Grain.PASSAGES):
        self._pending.append(lambda: self._set_encoder(encoder, grain))

    def _set_encoder(self, encoder, grain):
        known = self._index.encoder(grain)
        if known is None or known.digest != encoder.digest:
            for kept in self._index._kept.values():
                setattr(kept, "vectors" if grain is Grain.PASSAGES else "sentences", {})
        self._index._encoders[grain] = encoder

    def set_sentences(self, sentences):
        self._pending.append(lambda: self._set_sentences(sentences))

    def _set_sentences(self, sentences):
        for number, kept, _ in self._index._all():
            if number in sentences:
                kept.sentences[number] = sentences[number]

    def set_vectors(self, vectors):
        self._pending.append(lambda: self._set_vectors(vectors))

    def _set_vectors(self, vectors):
        for number, kept, _ in self._index._all():
            if number in vectors:
                kept.vectors[number] = vectors[number]

    def commit(self):
        pending, self._pending = self._pending, []
        for change in pending:
            change()


def _count(words, terms):
    """How often terms follow each other."""
    return sum(words[i : i + len(terms)] == terms for i in range(len(words) - len(terms) + 1))


# --- tiny models ---

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = {piece: i for i, piece in enumerate((*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS)))}
DIMENSIONS = 16


def embeddings(columns=DIMENSIONS, seed=7):
    return np.random.default_rng(seed).normal(size=(len(VOCABULARY), columns)).astype(np.float32)


def tokenizer():
    found = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer()
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])]
    found.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", special)
    return found


def encoder_folder(folder: Path, seed=7, **manifest):
    """An encoder: to the vector of each piece, the sum of all vectors of the text is added."""
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
    return _described(folder, {"name": "tiny", "kind": "encoder", "dimensions": DIMENSIONS, **manifest})


def ranker_folder(folder: Path, **manifest):
    """A ranker: the sum of one number for each piece, of which those of the passage count twice."""
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
    return _described(folder, {"name": "tiny", "kind": "ranker", **manifest})


def _save(folder, nodes, constants, inputs, output):
    folder.mkdir(parents=True, exist_ok=True)
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "length"]) for name in inputs]
    kept = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", given, [output], kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    tokenizer().save(str(folder / "tokenizer.json"))


def _described(folder, manifest):
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


class WordDiscourse:
    """A discourse model of random vectors for words; counts the documents that it reads.

    The entity is what the title and a sentence speak of, the aspect what its heading and the sentence do.
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
