"""Reading answers, against a slow reference that does without any of it."""

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
from capr.models.reader import SpanReader, Spans
from capr.search.generative import GenerativeReader
from capr.search.ranked_reader import Joint, RankedReader
from capr.search.reader import OnnxReader, load_reader
from capr.search.reading import Cutter, Extractor, completed
from capr.train.export import export

KNOWN = (
    "the aspirin dose was 500 mg of daily she took for pain what ? . , warfarin ##s ##n stopped on after naive 🫀 2 5 "
    "given a"
).split()
WINDOW, STRIDE, QUESTION, ANSWER = 24, 6, 8, 5
MANIFEST = {
    "name": "tiny", "kind": "reader", "pieces": WINDOW, "stride": STRIDE, "question": QUESTION, "answer": ANSWER,
    "temperature": 2.0, "bias": -0.5, "threshold": 0.3,
}  # fmt: skip
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
    """A reader that has learned nothing, with opinions of its own."""
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
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=WINDOW, initializer_range=0.4, num_labels=2,
    )  # fmt: skip
    model = SpanReader(BertForQuestionAnswering(config).eval())
    names = ("input_ids", "attention_mask", "token_type_ids")
    example = tuple(torch.ones(2, 8, dtype=torch.long) for _ in names)
    export(Spans(model, names), example, {name: {0: "windows", 1: "pieces"} for name in names}, folder)
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    return folder


@pytest.fixture(scope="module")
def reader(folder):
    return OnnxReader(folder, file="model.fp32.onnx")


def slow(reader, folder, question: str, paragraph: str, best: int = 1, limit: int = ANSWER):
    """Windows by the tokenizers' own truncation; every span of every window, one after the other."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    asked = tokenizer.encode(question, add_special_tokens=False)
    if len(asked.ids) > QUESTION:
        question = question[: asked.offsets[QUESTION - 1][1]]
    tokenizer.enable_truncation(WINDOW, stride=STRIDE, strategy="only_second")
    encoding = tokenizer.encode(question, paragraph)
    null, spans = 1.0, {}
    for window in (encoding, *encoding.overflowing):
        inside = [place for place, text in enumerate(window.sequence_ids) if text == 1]
        if not inside:
            return [], 1.0
        scores = reader._model.states([window])[0][0].astype(float)
        exps = [{place: math.exp(scores[place, side]) for place in (0, *inside)} for side in (0, 1)]
        begins, ends = ({place: value / sum(one.values()) for place, value in one.items()} for one in exps)
        null = min(null, begins[0] * ends[0])
        for first in inside:
            for last in inside:
                begin, end = window.offsets[first][0], window.offsets[last][1]
                cuts = cuts_a_word(paragraph, begin) or cuts_a_word(paragraph, end)
                if first <= last < first + (limit or 10**9) and not cuts:
                    value = begins[first] * ends[last]
                    spans[begin, end] = max(value, spans.get((begin, end), 0.0))
    found = []
    for (begin, end), value in sorted(spans.items(), key=lambda pair: -pair[1]):
        if all(end <= b or e <= begin for b, e, _ in found) and len(found) < best:
            whole = completed(paragraph, Span(begin, end))
            if all(whole.end <= b or e <= whole.begin for b, e, _ in found):
                begin, end = whole
            found.append((begin, end, value))
    return found, null


def cuts_a_word(text, place):
    """Whether a word, or a number with its point, goes on there."""
    before, after = text[:place][-2:], text[place:][:2]
    joins = ".,:/-"
    return (
        (is_of_word(before[-1:]) and is_of_word(after[:1]))
        or (before[-1:].isdigit() and after[:1] in joins and after[1:].isdigit())
        or (before[:1].isdigit() and before[1:] in joins and after[:1].isdigit())
    )


def is_of_word(character):
    return character.isalnum() or character == "_"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "question", ["What dose?", "What dose of aspirin was given, and for what pain, after warfarin?"]
)
def test_it_reads_what_the_slow_reference_reads(reader, folder, question, text):
    wanted, null = slow(reader, folder, question, text, 3)
    (found,) = reader.extract([(question, text)], 3)
    assert [(one.span.begin, one.span.end) for one in found] == [(begin, end) for begin, end, _ in wanted]
    for one, (_, _, value) in zip(found, wanted, strict=True):
        assert math.exp(one.score) == pytest.approx(value, rel=1e-4)
        assert math.exp(one.null) == pytest.approx(null, rel=1e-4)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*KNOWN[:22], "\r\n", "𝔞", "naïve", "\x00", "unknownword"]), max_size=90))
def test_any_paragraph_is_read_as_by_the_slow_reference(reader, folder, words):
    text = " ".join(words)
    wanted, _ = slow(reader, folder, "What dose?", text, 2)
    (found,) = reader.read("What dose?", [text], 2)
    assert [tuple(one.span) for one in found] == [(begin, end) for begin, end, _ in wanted]
    for one in found:
        assert one.span.of(text).strip() == one.span.of(text) != ""


def test_many_paragraphs_at_once_are_read_like_each_alone(reader, monkeypatch):
    alone = [reader.read("What dose?", [text], 2)[0] for text in TEXTS]
    for pieces in (1, 100, 10_000):
        monkeypatch.setattr(reader._extractor, "_together", pieces)
        together = reader.read("What dose?", TEXTS, 2)
        assert [[one.span for one in some] for some in together] == [[one.span for one in some] for some in alone]
        for one, two in zip(chain(*together), chain(*alone), strict=True):
            assert one.confidence == pytest.approx(two.confidence, abs=1e-4)
    assert reader.read("What dose?", []) == []


def test_paragraphs_without_words_have_no_readings_and_all_others_have(reader):
    found = reader.read("What dose?", TEXTS)
    assert [len(some) for some in found] == [1, 1, 1, 0, 0, 1, 1]
    assert found[5][0].span == Span(0, 5000)  # one endless word is one piece


def test_confidence_is_what_the_manifest_makes_of_the_margin(reader, folder):
    (found,) = reader.extract([("What dose?", TEXTS[1])], 2)
    (read,) = reader.read("What dose?", [TEXTS[1]], 2)
    assert read[0].confidence == pytest.approx(1 / (1 + math.exp(-((found[0].score - found[0].null) / 2 - 0.5))))
    assert read[0].confidence >= read[1].confidence
    (raw,) = OnnxReader(folder, file="model.fp32.onnx", calibrated=False).read("What dose?", [TEXTS[1]])
    assert raw[0].confidence == pytest.approx(1 - slow(reader, folder, "What dose?", TEXTS[1])[1], abs=1e-5)
    assert raw[0].span == read[0].span
    assert (reader.name, reader.threshold) == ("tiny", 0.3)


def test_the_length_of_answers_can_be_unlimited(folder, reader, tmp_path):
    shutil.copytree(folder, tmp_path / "any")
    (tmp_path / "any" / "manifest.json").write_text(json.dumps(MANIFEST | {"answer": 0}))
    unlimited = OnnxReader(tmp_path / "any", file="model.fp32.onnx")
    for text in TEXTS:
        wanted, _ = slow(reader, folder, "What dose?", text, limit=0)
        found = unlimited.read("What dose?", [text])[0]
        assert [tuple(one.span) for one in found] == [(begin, end) for begin, end, _ in wanted]


def test_windows_overlap_and_cover_the_paragraph(folder):
    cutter = Cutter(Tokenizer.from_file(str(folder / "tokenizer.json")), WINDOW, STRIDE, QUESTION)
    text = TEXTS[1]
    windows = list(cutter.windows("What dose?", text))
    room = WINDOW - 3 - 3  # marks, question
    assert [window.first for window in windows] == list(range(0, len(windows) * (room - STRIDE), room - STRIDE))
    assert windows[-1].first + windows[-1].end - windows[-1].begin == len(cutter.pieces(text).ids)
    assert all(window.ids[0] == 2 and len(window.ids) <= WINDOW for window in windows)
    assert all(len(window.ids) == len(window.type_ids) for window in windows)


def test_the_pieces_of_a_report_are_remembered(reader):
    before = reader._cutter.pieces.cache_info().misses
    for question in ("What dose?", "What pain?", "What dose?"):
        reader.read(question, ["She took warfarin daily.", "the dose of the dose"])
    assert reader._cutter.pieces.cache_info().misses - before <= 4


@pytest.mark.parametrize("question", ["", "  \n", "\x00\x01"])
def test_an_empty_question_is_told(reader, question):
    with pytest.raises(CaprError, match=r"the question is empty. Fix: ask something"):
        reader.read(question, ["The dose."])


def test_of_a_long_question_the_first_pieces_are_read(reader):
    begin = "what dose of aspirin was she given daily"
    long = begin + " for pain" * 500
    assert reader.read(long, TEXTS[:3]) == reader.read(begin, TEXTS[:3])
    assert reader.unread(begin) == ""
    assert long == begin + " " + reader.unread(long)


def test_a_question_that_is_too_long_is_answered_with_a_notice(reader):
    note = Document("n", TEXTS[0])
    asked = "what dose of aspirin was she given daily"
    assert capr.ask(note, asked, reader=reader).notices == ()
    ranked = RankedReader(reader, None, Joint("none", 1.0, 0.0, 0.0, 0.5))
    for one in (reader, GenerativeReader(reader, "http://127.0.0.1:9/v1", "m", paragraphs=0)):
        (notice,) = capr.ask(note, f"{asked} for pain or for the heart and why not", reader=one).notices
        assert notice == (
            "the end of the question was too long to be read, from 'for pain or for the' on. Fix: ask shorter."
        )
    assert ranked.unread(f"{asked} for pain") == "for pain"


def test_in_8_bits_it_is_near(folder, reader):
    one, two = (read.extract([("What dose?", TEXTS[0])])[0][0] for read in (reader, OnnxReader(folder)))
    assert one.null == pytest.approx(two.null, abs=0.5)
    assert load_reader(folder, threads=1).read("What dose?", [TEXTS[0]])[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "ranker"}, "has kind 'ranker', pooling 'cls', which is no reader"),
        ({"temperature": 0}, "temperature, bias and threshold have to be numbers"),
        ({"threshold": "high"}, "temperature, bias and threshold have to be numbers"),
        ({"stride": -1}, "have to be whole numbers"),
        ({"pieces": 4}, "a window of 4 pieces is too small to read"),
        ({"colour": "blue"}, "cannot be understood"),
    ],
)
def test_a_manifest_that_is_none_is_told(folder, tmp_path, changes, said):
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    with pytest.raises(CaprError, match=f"{said}.*Fix: "):
        OnnxReader(tmp_path / "other")


def test_a_folder_that_is_no_reader_is_told(tmp_path):
    with pytest.raises(CaprError, match=r"is no reader: it has no model.onnx. Fix: "):
        load_reader(tmp_path)


def test_a_tokenizer_without_marks_is_told(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.post_processor = processors.TemplateProcessing("$A", "$A $B:1", [])
    with pytest.raises(CaprError, match=r"puts no mark such as \[CLS\] before a text"):
        Cutter(tokenizer)


def splitting(way):
    """A tokenizer that knows nothing but how to split a text."""
    tokenizer = Tokenizer(models.WordLevel({"[CLS]": 0, "[UNK]": 1, "a": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = way
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", "[CLS] $A $B:1", [("[CLS]", 0)])
    return tokenizer


@pytest.mark.parametrize(
    ("text", "liked", "said"),
    [
        ("potassium 5.4 today", "5", "5.4"),  # a network that likes a piece of a number, or of a word
        ("on 2025-3-10, after", "3", "2025-3-10"),
        ("BP 112/66 supine", "66", "112/66"),
        ("hepatotoxicity seen", "toxi", "hepatotoxicity"),
        ("the dose (5).", "5", "5"),
        ("the dose (5 mg).", "5", "5 mg"),  # and one that likes a number, but not what it is a number of
        ("a rash\n \nAttending: B", "rash\n \nAttending", "rash"),  # and one that reads on after a blank line
        ("a rash\nand fever", "rash\nand", "rash\nand"),
    ],
)
def test_answers_are_whole_words_of_one_block_of_lines(text, liked, said):
    first = text.index(liked)
    characters = splitting(pre_tokenizers.Split("", "isolated"))  # each is a piece

    def network(windows):
        scores = np.zeros((len(windows), max(len(window.ids) for window in windows), 2), np.float32)
        for row, window in enumerate(windows):
            places = np.arange(window.begin, window.end)[:, None]
            scores[row, window.begin : window.end] = -np.abs(
                places - window.begin - (first, first + len(liked) - 1)
            )  # the nearer, the better
        return scores

    ((found,),) = Extractor(Cutter(characters, 64, 8, 4), network).extract([("a", text)])
    assert found.span.of(text) == said


def test_spans_that_are_taken_are_not_given_again():
    """A network that likes one place above all: the next answers lie beside it, before it comes to worse windows."""
    tokenizer = splitting(pre_tokenizers.WhitespaceSplit())

    def network(windows):
        scores = np.zeros((len(windows), max(len(window.ids) for window in windows), 2), np.float32)
        for row, window in enumerate(windows):
            scores[row, window.begin + 2 : window.begin + 4] = 9, 9
        return scores

    (found,) = Extractor(Cutter(tokenizer, 32, 8, 4), network, 3).extract([("a", "b c d e f g")], 9)
    said = [one.span.of("b c d e f g") for one in found]
    assert said[0] in ("d", "e", "d e")
    assert " ".join(sorted(" ".join(said).split())) == "b c d e f g"
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize(
    ("text", "liked", "said"),
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
def test_a_number_is_read_with_its_unit_and_its_bound(text, liked, said):
    begin = text.index(liked)
    assert completed(text, Span(begin, begin + len(liked))).of(text) == said
