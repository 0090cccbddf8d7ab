"""The training data of readers: questions with paragraphs, and batches of word pieces."""

import itertools
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reports import REPORTS, SOURCES, family_of
from tokenizers import Tokenizer

from capr.documents import Document, Span
from capr.models.bases import load_answerer
from capr.models.reader import SpanReader, hard_loss, pieces_of, position_in, soft_loss
from capr.runtime.extraction import Cutter, ExtractedAnswer
from capr.supervise.paragraph_questions import (
    ParagraphQuestion,
    WeightedReports,
    cut_report,
    draw_questions,
    pair_with_paragraphs,
    split,
    whole_reports,
)
from capr.supervise.reports import Report, ReportQuestion
from capr.train.reading import group_by_length, validation_scores


def test_paragraphs_with_and_without_the_answer_are_balanced():
    text = "".join(f"{word:<10}" for word in "zero one two three four five six seven eight nine".split())
    answerable = ReportQuestion("1", "which?", (Span(20, 23), Span(62, 65), Span(67, 69)))
    unanswerable_question = ReportQuestion("2", "who?", ())
    report = Report(Document("d", text), (answerable, unanswerable_question))

    def cut(document):
        return [Span(begin, begin + 10) for begin in range(0, 100, 10)]

    actual = draw_questions([WeightedReports([report])], "seed", cut)
    right = [example for example in actual if example.answers]
    assert sorted((example.paragraph, example.answers) for example in right) == [
        ((20, 30), ((0, 3),)),
        ((60, 70), ((2, 5), (7, 9))),
    ]
    assert {example.gold_answers[0] for example in right} == {"two", "x  "}
    wrong = [example for example in actual if not example.answers]
    assert [example.question for example in wrong].count("which?") == 2
    assert [example.question for example in wrong].count("who?") == 1
    assert not {example.paragraph.begin for example in wrong if example.question == "which?"} & {20, 60}
    assert not [
        example
        for example in draw_questions([WeightedReports([report])], "seed", cut, unanswerable=0)
        if example.question == "who?"
    ]


def test_the_paragraph_without_the_answer_may_be_the_most_similar_one():
    text = "apixaban was stopped\nblood in the urine\napixaban was given\nhe lives alone    \n"
    questions = (
        ReportQuestion("1", "Why was apixaban stopped?", (Span(21, 26),)),
        ReportQuestion("2", "Where is urine and blood?", ()),
    )
    lines = [Span(0, 20), Span(21, 39), Span(40, 58), Span(59, 77)]
    report = Report(Document("d", text), questions)

    def wrong(alike):
        actual = (
            example
            for seed in range(20)
            for example in draw_questions(
                [WeightedReports([report])], str(seed), lambda _: lines, hard_negative_share=alike
            )
        )
        return {(example.question, lines.index(example.paragraph)) for example in actual if not example.answers}

    assert wrong(1.0) == {(questions[0].text, 0), (questions[1].text, 1)}
    assert len(wrong(0.0)) == 7  # any but the one that answers


def test_batches_have_paragraphs_of_similar_length_and_lose_none():
    draw = random.Random(1)
    document = Document("d", "x" * 2000)
    draws = [[ParagraphQuestion(str(number), document, Span(0, draw.randint(1, 2000)), ())] for number in range(999)]
    ordered = group_by_length(draws, 16)
    assert sorted(draws, key=id) == sorted(ordered, key=id)
    sizes = [[example.paragraph.end for (example,) in ordered[place : place + 16]] for place in range(0, 999, 16)]
    assert max(max(batch) - min(batch) for batch in sizes) < 400
    assert [max(batch) for batch in sizes] != sorted(max(batch) for batch in sizes)
    assert group_by_length(draws, 16) == ordered
    assert group_by_length([], 16) == []


def test_a_report_of_one_paragraph_has_no_negatives_and_an_empty_question_is_left_out():
    questions = ReportQuestion("1", "what?", (Span(0, 4),)), ReportQuestion("2", " ", (Span(0, 4),))
    report = Report(Document("d", "rest and drops"), questions)
    assert len(whole_reports([WeightedReports([report])], 9, 9, None, 90, "seed")) == 1
    (example,) = draw_questions([WeightedReports([report])], "seed")
    assert example.gold_answers == ["rest"]


def test_a_paragraph_with_a_part_of_the_answer_neither_answers_nor_not():
    question = ReportQuestion("1", "what?", (Span(8, 12),))
    actual = pair_with_paragraphs(Document("d", "0123456789" * 3), question, [Span(0, 10), Span(10, 20), Span(20, 30)])
    assert [example.paragraph for example in actual] == [Span(20, 30)]


def test_uniform_paragraphs_cut_no_answer_and_change_with_the_epoch():
    text = "word " * 400
    answers = [Span(begin, begin + 30) for begin in range(100, 1900, 211)]
    report = Report(Document("d", text), tuple(ReportQuestion(str(i), "q?", (a,)) for i, a in enumerate(answers)))
    for length in (300, 700, 1500):
        paragraphs = cut_report(report, None, length)
        assert all(any(paragraph.covers(answer) for paragraph in paragraphs) for answer in answers)
    lengths = {
        max(
            example.paragraph.end - example.paragraph.begin
            for example in draw_questions([WeightedReports([report])], f"1 {epoch}")
        )
        for epoch in range(6)
    }
    assert len(lengths) > 2
    assert draw_questions([WeightedReports([report])], "1 0") == draw_questions([WeightedReports([report])], "1 0")


@pytest.mark.parametrize(
    ("weight", "least", "most"), [(1, 100, 100), (3, 300, 300), (0.5, 30, 70), (1.5, 130, 170), (0, 0, 0)]
)
def test_sources_are_drawn_as_often_as_they_weigh(weight, least, most):
    questions = tuple(ReportQuestion(str(i), f"{i}?", (Span(0, 4),)) for i in range(100))
    actual = draw_questions([WeightedReports([Report(Document("d", "rest"), questions)], weight)], "seed")
    assert least <= len(actual) <= most


def test_no_report_is_in_both_parts_and_a_source_may_be_for_training_only():
    training, held_out = split([WeightedReports(REPORTS), WeightedReports(REPORTS[:3], held=False)], 0.3, 1)
    ids = [{report.document.id for report in part[0].reports} for part in (training, held_out)]
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == {report.document.id for report in REPORTS}
    assert 0.15 < len(ids[1]) / len(REPORTS) < 0.45
    assert held_out[1].reports == []
    assert len(training[1].reports) == 3


def test_whole_reports_have_the_paragraphs_that_answer():
    groups = whole_reports(SOURCES, 1000, 2, None, 30, "seed")
    assert len(groups) == 160
    assert {len(group) for group in groups} <= {1, 2}
    answered = [any(example.answers for example in group) for group in groups]
    assert sum(answered) == sum(bool(question.answers) for report in REPORTS for question in report.questions)


# The position of an answer


WORDS = ("gout", "the", "fever", "naïve", "🫀", "a", "\r\n", "\t", "x" * 120, "2.5", "é", "（", "\u200b", "\x00")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=60), st.data())
def test_an_answer_is_mapped_to_the_pieces_that_have_its_characters(bert, words, data):
    text = data.draw(st.sampled_from([" ", ""])).join(words)
    begin = data.draw(st.integers(0, len(text) - 1))
    answer = Span(begin, data.draw(st.integers(begin + 1, len(text))))
    cutter = cutter_of(bert)
    pieces = cutter.pieces(text)
    expected = [
        place
        for place, (first, last) in enumerate(pieces.offsets.tolist())
        if set(range(first, last)) & set(range(*answer)) and text[first:last].strip()
    ]
    actual = pieces_of(answer, pieces)
    assert actual == ((expected[0], expected[-1]) if expected else None)
    whole = 0
    for window in cutter.windows("gout?", text):
        first, last = position_in(window, actual)
        inside = (
            actual is not None and window.first <= actual[0] and actual[1] < window.first + window.end - window.begin
        )
        assert (first, last) == ((0, 0) if not inside else (first, last))
        if inside:
            whole += 1
            assert window.begin <= first <= last < window.end
            ids = pieces.ids[actual[0] : actual[1] + 1]
            assert window.ids[first : last + 1] == ids
    if actual is not None and actual[1] - actual[0] < 4:
        assert whole  # windows share enough pieces that a short answer is whole in one of them


def cutter_of(base) -> Cutter:
    return Cutter(Tokenizer.from_file(str(base / "tokenizer.json")), 20, 6, 8)


def test_a_batch_points_at_the_answer_or_at_cls(bert):
    objective = family_of(bert, pieces=20, stride=6).objective("cpu")
    text = "the night is of " * 8 + "tablets and rest " + "in days often with " * 8
    begin = text.index("tablets")
    right = ParagraphQuestion("treatment?", Document("d", text), Span(0, len(text)), (Span(begin, begin + 16),))
    wrong = ParagraphQuestion("treatment?", Document("d", text), Span(0, 64), ())
    batch = objective.batch([[right], [wrong]], random.Random(0))
    windows = list(objective.cutter.windows("treatment?", text))
    assert len(windows) > 4
    assert len(batch.positions) == 4 + len(list(objective.cutter.windows("treatment?", wrong.text))[:4])
    tokens = [objective.tokenizer.base_tokenizer.id_to_token(i) for i in batch.inputs["input_ids"][0].tolist()]
    first, last = batch.positions[0].tolist()
    assert tokens[first : last + 1] == ["tablets", "and", "rest"]
    assert (batch.positions[4:] == 0).all()
    for row, allowed in zip(batch.inputs["input_ids"].tolist(), batch.allowed.tolist(), strict=True):
        allowed_tokens = [
            objective.tokenizer.base_tokenizer.id_to_token(i) for i, yes in zip(row, allowed, strict=True) if yes
        ]
        assert allowed_tokens[0] == "[CLS]"
        assert not {"treatment", "?", "[SEP]", "[PAD]"} & set(allowed_tokens)


def test_losses_against_numpy():
    draw = np.random.default_rng(0)
    scores, teacher_scores = draw.normal(size=(2, 3, 6, 2)).astype(np.float32)
    allowed = np.array([[1, 0, 0, 1, 1, 1], [1, 0, 1, 1, 0, 0], [1, 0, 0, 1, 0, 0]], bool)
    places = np.array([[3, 5], [0, 0], [3, 3]])
    hard, soft = [], []
    for row, side in itertools.product(range(3), range(2)):
        mine, theirs = (array[row, allowed[row], side].astype(float) for array in (scores, teacher_scores))
        logs = mine - np.log(np.exp(mine).sum())
        hard.append(-logs[np.nonzero(allowed[row])[0].tolist().index(places[row, side])])
        p, q = (np.exp(array / 2) / np.exp(array / 2).sum() for array in (theirs, mine))
        soft.append(4 * (p * np.log(p / q)).sum())
    tensors = torch.from_numpy(scores), torch.from_numpy(allowed)
    assert hard_loss(tensors[0], torch.from_numpy(places), tensors[1]).item() == pytest.approx(np.mean(hard), abs=1e-5)
    actual = soft_loss(tensors[0], torch.from_numpy(teacher_scores), tensors[1], 2.0)
    assert actual.item() == pytest.approx(np.mean(soft), abs=1e-5)


def test_the_measures_are_those_of_squad_v2():
    document = Document("d", "He took 500 mg of aspirin.")
    whole = Span(0, len(document.text))
    questions = [ParagraphQuestion("q?", document, whole, (Span(8, 14),))] * 3 + [
        ParagraphQuestion("q?", document, whole, ())
    ] * 2
    actual = [
        ExtractedAnswer(Span(8, 14), -1.0, -2.0),
        ExtractedAnswer(Span(8, 17), -1.0, -2.0),
        ExtractedAnswer(Span(8, 14), -2.0, -1.0),
        ExtractedAnswer(Span(8, 14), -2.0, -1.0),
        ExtractedAnswer(Span(8, 14), -1.0, -2.0),
    ]
    scores = validation_scores(questions, actual)
    assert scores["F1"] == pytest.approx((1 + 0.8 + 0 + 1 + 0) / 5)
    assert scores["EM"] == pytest.approx((1 + 0 + 0 + 1 + 0) / 5)
    assert scores["answered"] == pytest.approx(2 / 3)
    assert scores["refused"] == 0.5
    assert validation_scores(questions[:1], [None])["F1"] == 0


def test_the_network_is_a_linear_layer_on_the_encoder(bert):
    model = SpanReader(load_answerer(str(bert)).eval())
    ids = torch.tensor([[2, 7, 8, 3, 9, 3], [2, 7, 3, 9, 3, 0]])
    mask = (ids > 0).long()
    with torch.no_grad():
        actual = model(input_ids=ids, attention_mask=mask).numpy()
        states = model.answerer.bert(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
    head = model.answerer.qa_outputs
    expected = states @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    assert actual.shape == (2, 6, 2)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
