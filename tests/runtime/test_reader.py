"""Tests of reading answers, compared with a slow reference without windows, batches or vectorised search."""

import json
import math
import shutil
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForQuestionAnswering

import capr
from capr.documents import CaprError, Document, Span
from capr.models.export import export
from capr.models.reader import SpanReader, SpanReaderForExport
from capr.runtime.extraction import AnswerExtractor, Cutter, completed
from capr.runtime.generative import GenerativeReader
from capr.runtime.ranked_reader import Joint, RankedReader
from capr.runtime.reader import OnnxReader

KNOWN = (
    "the aspirin dose was 500 mg of daily she took for pain what ? . , warfarin ##s ##n stopped on after naive 🫀 2 5 "
    "given a"
).split()
WINDOW, STRIDE, QUESTION, ANSWER = 24, 6, 8, 5
MANIFEST = {
    "name": "tiny",
    "kind": "reader",
    "pieces": WINDOW,
    "stride": STRIDE,
    "question": QUESTION,
    "answer": ANSWER,
    "temperature": 2.0,
    "bias": -0.5,
    "threshold": 0.3,
}
TEXTS = (
    "The dose of aspirin was 500 mg daily.",
    "She took warfarin for pain.\r\nAspirin was stopped on 2.5 🫀 after the dose. " * 3,
    "🫀 naïve 𝔞spirin\u0301 (500 mg)",
    "",
    " \r\n\t ",
    "x" * 5000,
    "500 mg " * 60,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an untrained reader with random weights."""
    folder = tmp_path_factory.mktemp("reader")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(KNOWN)]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=WINDOW,
        initializer_range=0.4,
        num_labels=2,
    )
    model = SpanReader(BertForQuestionAnswering(config).eval())
    names = ("input_ids", "attention_mask", "token_type_ids")
    example = tuple(torch.ones(2, 8, dtype=torch.long) for _ in names)
    export(SpanReaderForExport(model, names), example, {name: {0: "windows", 1: "pieces"} for name in names}, folder)
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    return folder


@pytest.fixture(scope="module")
def reader(folder):
    return OnnxReader(folder, file="model.fp32.onnx")


def read_slowly(reader, folder, question: str, paragraph: str, best: int = 1, limit: int = ANSWER):
    """Score every span of every window in turn. The truncation of the tokenizers library makes the windows."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    question_encoding = tokenizer.encode(question, add_special_tokens=False)
    if len(question_encoding.ids) > QUESTION:
        question = question[: question_encoding.offsets[QUESTION - 1][1]]
    tokenizer.enable_truncation(WINDOW, stride=STRIDE, strategy="only_second")
    encoding = tokenizer.encode(question, paragraph)
    null, spans = 1.0, {}
    for window in (encoding, *encoding.overflowing):
        inside = [i for i, text in enumerate(window.sequence_ids) if text == 1]
        if not inside:
            return [], 1.0
        scores = reader._model.states([window])[0][0].astype(float)
        exps = [{i: math.exp(scores[i, side]) for i in (0, *inside)} for side in (0, 1)]
        begins, ends = ({i: value / sum(side.values()) for i, value in side.items()} for side in exps)
        null = min(null, begins[0] * ends[0])
        for first in inside:
            for last in inside:
                begin, end = window.offsets[first][0], window.offsets[last][1]
                cuts = cuts_a_word(paragraph, begin) or cuts_a_word(paragraph, end)
                if first <= last < first + (limit or 10**9) and not cuts:
                    value = begins[first] * ends[last]
                    spans[begin, end] = max(value, spans.get((begin, end), 0.0))
    answers = []
    for (begin, end), value in sorted(spans.items(), key=lambda pair: -pair[1]):
        if all(end <= b or e <= begin for b, e, _ in answers) and len(answers) < best:
            whole = completed(paragraph, Span(begin, end))
            if all(whole.end <= b or e <= whole.begin for b, e, _ in answers):
                begin, end = whole
            answers.append((begin, end, value))
    return answers, null


def cuts_a_word(text, offset):
    """Whether the offset is inside a word, or inside a number with a point."""
    before, after = text[:offset][-2:], text[offset:][:2]
    joins = ".,:/-"
    return (
        (is_word_character(before[-1:]) and is_word_character(after[:1]))
        or (before[-1:].isdigit() and after[:1] in joins and after[1:].isdigit())
        or (before[:1].isdigit() and before[1:] in joins and after[:1].isdigit())
    )


def is_word_character(character):
    return character.isalnum() or character == "_"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "question", ["What dose?", "What dose of aspirin was given, and for what pain, after warfarin?"]
)
def test_the_answers_equal_those_of_the_slow_reference(reader, folder, question, text):
    expected, null = read_slowly(reader, folder, question, text, 3)
    (answers,) = reader.extract([(question, text)], 3)
    assert [tuple(answer.span) for answer in answers] == [(begin, end) for begin, end, _ in expected]
    for answer, (_, _, value) in zip(answers, expected, strict=True):
        assert math.exp(answer.score) == pytest.approx(value, rel=1e-4)
        assert math.exp(answer.null) == pytest.approx(null, rel=1e-4)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*KNOWN[:22], "\r\n", "𝔞", "naïve", "\x00", "unknownword"]), max_size=90))
def test_the_answers_of_any_paragraph_equal_those_of_the_slow_reference(reader, folder, words):
    text = " ".join(words)
    expected, _ = read_slowly(reader, folder, "What dose?", text, 2)
    (answers,) = reader.read("What dose?", [text], 2)
    assert [tuple(answer.span) for answer in answers] == [(begin, end) for begin, end, _ in expected]
    for answer in answers:
        assert answer.span.of(text).strip() == answer.span.of(text) != ""


def spans_of(answers):
    return [[answer.span for answer in group] for group in answers]


def test_the_batch_size_changes_no_answers(reader, monkeypatch):
    alone = [reader.read("What dose?", [text], 2)[0] for text in TEXTS]
    for pieces in (1, 100, 10_000):
        monkeypatch.setattr(reader._extractor, "_together", pieces)
        together = reader.read("What dose?", TEXTS, 2)
        assert spans_of(together) == spans_of(alone)
        for answer, answer_alone in zip(chain(*together), chain(*alone), strict=True):
            assert answer.confidence == pytest.approx(answer_alone.confidence, abs=1e-4)
    assert reader.read("What dose?", []) == []


def test_only_paragraphs_without_words_have_no_answers(reader):
    answers = reader.read("What dose?", TEXTS)
    assert [len(group) for group in answers] == [1, 1, 1, 0, 0, 1, 1]
    assert answers[5][0].span == Span(0, 5000)  # one endless word is one piece


def test_temperature_and_bias_turn_the_margin_into_the_confidence(reader, folder):
    (extracted,) = reader.extract([("What dose?", TEXTS[1])], 2)
    (answers,) = reader.read("What dose?", [TEXTS[1]], 2)
    margin = extracted[0].score - extracted[0].null
    assert answers[0].confidence == pytest.approx(1 / (1 + math.exp(-(margin / 2 - 0.5))))
    assert answers[0].confidence >= answers[1].confidence
    (raw,) = OnnxReader(folder, file="model.fp32.onnx", calibrated=False).read("What dose?", [TEXTS[1]])
    _, null = read_slowly(reader, folder, "What dose?", TEXTS[1])
    assert raw[0].confidence == pytest.approx(1 - null, abs=1e-5)
    assert raw[0].span == answers[0].span
    assert (reader.name, reader.threshold) == ("tiny", 0.3)


def test_the_length_of_answers_can_be_unlimited(folder, reader, tmp_path):
    shutil.copytree(folder, tmp_path / "any")
    (tmp_path / "any" / "manifest.json").write_text(json.dumps(MANIFEST | {"answer": 0}))
    unlimited = OnnxReader(tmp_path / "any", file="model.fp32.onnx")
    for text in TEXTS:
        expected, _ = read_slowly(reader, folder, "What dose?", text, limit=0)
        answers = unlimited.read("What dose?", [text])[0]
        assert [tuple(answer.span) for answer in answers] == [(begin, end) for begin, end, _ in expected]


def test_windows_overlap_and_cover_the_paragraph(folder):
    cutter = Cutter(Tokenizer.from_file(str(folder / "tokenizer.json")), WINDOW, STRIDE, QUESTION)
    text = TEXTS[1]
    windows = list(cutter.windows("What dose?", text))
    room = WINDOW - 3 - 3  # marks, question
    assert [window.first for window in windows] == list(range(0, len(windows) * (room - STRIDE), room - STRIDE))
    assert windows[-1].first + windows[-1].end - windows[-1].begin == len(cutter.pieces(text).ids)
    assert all(window.ids[0] == 2 and len(window.ids) <= WINDOW for window in windows)
    assert all(len(window.ids) == len(window.type_ids) for window in windows)


def test_the_pieces_of_a_report_are_cached(reader):
    before = reader._cutter.pieces.cache_info().misses
    for question in ("What dose?", "What pain?", "What dose?"):
        reader.read(question, ["She took warfarin daily.", "the dose of the dose"])
    assert reader._cutter.pieces.cache_info().misses - before <= 4


@pytest.mark.parametrize("question", ["", "  \n", "\x00\x01"])
def test_an_empty_question_is_an_error(reader, question):
    with pytest.raises(CaprError, match=r"the question is empty. Fix: ask something"):
        reader.read(question, ["The dose."])


def test_only_the_first_pieces_of_a_long_question_are_read(reader):
    begin = "what dose of aspirin was she given daily"
    long = begin + " for pain" * 500
    assert reader.read(long, TEXTS[:3]) == reader.read(begin, TEXTS[:3])
    assert reader.unread(begin) == ""
    assert long == begin + " " + reader.unread(long)


def test_a_question_that_is_too_long_is_answered_with_a_notice(reader):
    note = Document("n", TEXTS[0])
    question = "what dose of aspirin was she given daily"
    assert capr.ask(note, question, reader=reader).notices == ()
    ranked = RankedReader(reader, None, Joint("none", 1.0, 0.0, 0.0, 0.5))
    generative = GenerativeReader(reader, "http://127.0.0.1:9/v1", "m", paragraphs=0)
    for any_reader in (reader, generative):
        (notice,) = capr.ask(note, f"{question} for pain or for the heart and why not", reader=any_reader).notices
        assert notice == (
            "the reader did not read the end of the question, from 'for pain or for the' on. Fix: ask a shorter question."
        )
    assert ranked.unread(f"{question} for pain") == "for pain"


def test_the_8_bit_network_is_close_to_the_full_one(folder, reader):
    full, quantised = (model.extract([("What dose?", TEXTS[0])])[0][0] for model in (reader, OnnxReader(folder)))
    assert full.null == pytest.approx(quantised.null, abs=0.5)
    assert OnnxReader(folder, threads=1).read("What dose?", [TEXTS[0]])[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "ranker"}, "has kind 'ranker', not 'reader'"),
        ({"temperature": 0}, "has temperature 0"),
        ({"threshold": "high"}, "threshold is 'high', and must be a number"),
        ({"stride": -1}, "stride is -1, and must be a whole number"),
        ({"pieces": 4}, "a window of 4 pieces is too small to read"),
        ({"colour": "blue"}, "is invalid: it does not know 'colour'"),
    ],
)
def test_an_invalid_manifest_is_an_error(folder, tmp_path, changes, message):
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    with pytest.raises(CaprError, match=f"{message}.*Fix: "):
        OnnxReader(tmp_path / "other")


def test_a_folder_that_is_not_a_reader_is_an_error(tmp_path):
    with pytest.raises(CaprError, match=r"is not a reader: it has no model.onnx. Fix: "):
        OnnxReader(tmp_path)


def test_a_tokenizer_without_marks_is_an_error(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = processors.TemplateProcessing("$A", "$A $B:1", [])
    with pytest.raises(CaprError, match=r"puts no mark such as \[CLS\] before a text"):
        Cutter(tokenizer)


def splitter(pre_tokenizer):
    """Return a tokenizer with a vocabulary of one word, which only splits texts."""
    tokenizer = Tokenizer(models.WordLevel({"[CLS]": 0, "[UNK]": 1, "a": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", "[CLS] $A $B:1", [("[CLS]", 0)])
    return tokenizer


@pytest.mark.parametrize(
    ("text", "scored", "expected"),
    [
        ("potassium 5.4 today", "5", "5.4"),  # the best score has a part of a number, or of a word
        ("on 2025-3-10, after", "3", "2025-3-10"),
        ("BP 112/66 supine", "66", "112/66"),
        ("hepatotoxicity seen", "toxi", "hepatotoxicity"),
        ("the dose (5).", "5", "5"),
        ("the dose (5 mg).", "5", "5 mg"),  # the best score has a number without its unit
        ("a rash\n \nAttending: B", "rash\n \nAttending", "rash"),  # the best score has text after a blank line
        ("a rash\nand fever", "rash\nand", "rash\nand"),
    ],
)
def test_answers_are_whole_words_of_one_block_of_lines(text, scored, expected):
    first = text.index(scored)
    characters = splitter(pre_tokenizers.Split("", "isolated"))  # every character is a piece

    def network(windows):
        scores = np.zeros((len(windows), max(len(window.ids) for window in windows), 2), np.float32)
        for row, window in enumerate(windows):
            positions = np.arange(window.begin, window.end)[:, None] - window.begin
            distances = np.abs(positions - (first, first + len(scored) - 1))
            scores[row, window.begin : window.end] = -distances
        return scores

    ((answer,),) = AnswerExtractor(Cutter(characters, 64, 8, 4), network).extract([("a", text)])
    assert answer.span.of(text) == expected


def test_answers_do_not_overlap_if_one_position_scores_highest():
    tokenizer = splitter(pre_tokenizers.WhitespaceSplit())

    def network(windows):
        scores = np.zeros((len(windows), max(len(window.ids) for window in windows), 2), np.float32)
        for row, window in enumerate(windows):
            scores[row, window.begin + 2 : window.begin + 4] = 9, 9
        return scores

    (answers,) = AnswerExtractor(Cutter(tokenizer, 32, 8, 4), network, 3).extract([("a", "b c d e f g")], 9)
    texts = [answer.span.of("b c d e f g") for answer in answers]
    assert texts[0] in ("d", "e", "d e")
    assert " ".join(sorted(" ".join(texts).split())) == "b c d e f g"
    scores = [answer.score for answer in answers]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("text", "scored", "expected"),
    [
        ("lipase 4,820 U/L on arrival", "4,820", "4,820 U/L"),
        ("vitamin D was 28 nmol/L.", "28", "28 nmol/L"),
        ("platelets 6 x 10^9/L now", "6", "6 x 10^9/L"),
        ("BP 112/66 mmHg standing", "112/66", "112/66 mmHg"),
        ("SpO2 93% on air", "93", "93%"),
        ("less than 5 g of salt", "5 g", "less than 5 g"),
        ("for at\nleast six months", "six months", "at\nleast six months"),
        ("creatinine >3 today", "3", ">3"),
        ("about nine in ten", "nine in ten", "about nine in ten"),
        ("room 12 later", "12", "12"),  # no unit
        ("in 2 more", "2", "2"),
        ("5 men", "5", "5"),  # a unit is a whole word
        ("over the counter drugs", "the counter", "the counter"),  # bounds no number
        ("handover 5 pm", "5", "5"),
        ("metoprolol 25 mg", "metoprolol", "metoprolol"),
    ],
)
def test_a_number_is_read_with_its_unit_and_its_bound(text, scored, expected):
    begin = text.index(scored)
    assert completed(text, Span(begin, begin + len(scored))).of(text) == expected
