"""The reader: what it learns from, and from reports to a folder that answers."""

import itertools
import json
import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from capr.documents import CaprError, Document, Span
from capr.models.reader import SpanReader
from capr.search.reader import OnnxReader
from capr.search.reading import Cutter, Extracted
from capr.supervise.reports import Asked, Report
from capr.train import reader as training
from capr.train.bases import load_answerer
from capr.train.loop import Schedule
from capr.train.questions import Posed, Source, cut_up, posed, put_to_all, split, whole_reports
from capr.train.reader import Recipe, by_length, hard_loss, pieces_of, place_in, soft_loss, train, validated

SAID = {"symptoms": ("wheeze", "cough", "rash", "fever"), "treatment": ("tablets", "rest", "surgery", "drops")}
FILLER = ("the", "of", "is", "and", "in", "with", "often", "for", "days", "night")
SCHEDULE = Schedule(epochs=30, batch=16, learning_rate=3e-3, patience=0, device="cpu")


def small_reports(count: int = 80, seed: int = 0) -> list[Report]:
    """Each speaks of symptoms, then of a treatment; one in four leaves one of them out."""
    draw = random.Random(seed)
    reports = []
    for number in range(count):
        text, questions = "", []
        silent = draw.choice(list(SAID)) if number % 4 == 0 else None
        for kind, words in SAID.items():
            text += " ".join(draw.choices(FILLER, k=draw.randint(3, 9))) + " "
            begin = len(text)
            if kind != silent:
                text += " and ".join(draw.sample(words, draw.randint(1, 2)))
            answers = (Span(begin, len(text)),) if kind != silent else ()
            questions.append(Asked(f"{number} {kind}", f"{kind}?", answers))
            text += " " + " ".join(draw.choices(FILLER, k=draw.randint(3, 9))) + " "
        reports.append(Report(Document(f"r{number}", text), tuple(questions)))
    return reports


REPORTS = small_reports()
SOURCES = [Source(REPORTS, name="small")]


def recipe_of(bert, **changes) -> Recipe:
    given = {"lengths": (60, 120), "pieces": 40, "stride": 8, "question": 8, "answer": 8, "validation": 0.2}
    return Recipe(**{"base": str(bert), "licence": "CC0-1.0", **given, **changes})


@pytest.fixture(scope="module")
def trained(bert, tmp_path_factory):
    """A folder, the objective that was exported, its scores, and what was told."""
    folder = tmp_path_factory.mktemp("reader")
    built, reports = [], []
    with pytest.MonkeyPatch.context() as patch:
        make = training.build
        patch.setattr(training, "build", lambda *given: built.append(make(*given)) or built[0])
        scores = train(SOURCES, recipe_of(bert, name="tiny"), SCHEDULE, folder, progress=reports.append)
    return folder, built[0], scores, reports


def test_it_learns_to_answer_and_to_refuse(trained):
    _, objective, scores, reports = trained
    losses = [report.loss for report in reports]
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
    assert scores["F1"] > 0.8
    assert scores["answered"] > 0.8
    assert scores["refused"] > 0.8
    unseen = posed([Source(small_reports(20, seed=9))], "unseen", lengths=(80, 80))
    found = validated(unseen, objective.extract(unseen))
    assert found["F1"] > 0.7
    assert 0.3 < sum(bool(one.answers) for one in unseen) / len(unseen) < 0.6


def test_a_folder_has_all_that_a_program_needs(trained):
    folder, _, scores, _ = trained
    wanted = {"model.onnx", "model.fp32.onnx", "tokenizer.json", "manifest.json", "config.json", "torch"}
    assert {path.name for path in folder.iterdir()} == wanted | {"README.md", "training.json"}
    manifest = json.loads((folder / "manifest.json").read_text())
    temperature, bias, threshold = (manifest.pop(name) for name in ("temperature", "bias", "threshold"))
    assert manifest == {"name": "tiny", "kind": "reader", "pieces": 40, "stride": 8, "question": 8, "answer": 8}
    assert temperature > 0
    assert math.isfinite(bias)
    assert 0 < threshold < 1
    facts = json.loads((folder / "training.json").read_text())
    assert facts["scores"] == scores
    assert facts["data"]["small"] == "160 questions, 1 times"
    said = (folder / "README.md").read_text()
    assert "Licence of the training data: CC0-1.0." in said
    assert str(folder.parent) not in said


def test_in_8_bits_it_answers_as_in_32(trained):
    folder, objective, scores, _ = trained
    assert scores["as torch, 32 bits"] == 1
    assert scores["as torch, 8 bits"] > 0.9
    assert scores["F1, 8 bits"] == pytest.approx(scores["F1, 32 bits"], abs=0.05)
    asked = posed([Source(small_reports(10, seed=5))], "bits", lengths=(80, 80))
    for one, two in zip(objective.extract(asked), training.extracted(OnnxReader(folder), asked), strict=True):
        assert one.margin == pytest.approx(two.margin, abs=1.5)


def test_confidence_is_calibrated_and_the_threshold_tells_reports_apart(trained):
    folder, _, scores, _ = trained
    reader = OnnxReader(folder)
    assert scores["calibration error"] < 0.1
    assert scores["threshold"] == reader.threshold
    groups = whole_reports([Source(small_reports(60, seed=7))], 200, 12, None, 90, "unseen")
    kept, refused = [], []
    for group in groups:
        readings = reader.read(group[0].question, [one.text for one in group])
        sure = max(reading.confidence for some in readings for reading in some) >= reader.threshold
        (kept if any(one.answers for one in group) else refused).append(sure)
    assert sum(kept) / len(kept) > 0.75
    assert sum(refused) / len(refused) < 0.4


def weights(folder):
    return load_answerer(str(folder / "torch")).state_dict()


def same(one, two) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(new_base, tmp_path):
    base = new_base(tmp_path / "base", dropout=0.1)
    short = replace(SCHEDULE, epochs=3)
    wanted = train(SOURCES, recipe_of(base), short, tmp_path / "whole", onnx=False)

    def stop(report):
        if report.scores:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SOURCES, recipe_of(base), short, tmp_path / "broken", progress=stop, onnx=False)
    steps = []
    told = lambda report: steps.append(report.step)  # noqa: E731
    assert train(SOURCES, recipe_of(base), short, tmp_path / "broken", True, told, onnx=False) == wanted
    assert min(steps) > 10
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "broken"))
    assert not (tmp_path / "broken" / "checkpoint.pt").exists()
    assert not (tmp_path / "broken" / "model.onnx").exists()


def test_processes_make_the_same_batches_as_a_thread(bert, tmp_path):
    learned = {}
    for workers in (0, 2):
        torch.manual_seed(0)  # of the head, which is new
        objective = training.build(recipe_of(bert), "cpu")
        run = training._Run(objective, SOURCES, None, [], replace(SCHEDULE, epochs=1), tmp_path / str(workers), print)
        run.workers, run.scored = workers, lambda: None
        run.run(False)
        learned[workers] = objective.model.state_dict()
        assert run.step == run.steps > 2
    assert all(torch.equal(learned[0][name], learned[2][name]) for name in learned[0])


def test_a_smaller_reader_comes_near_its_teacher(trained, tmp_path):
    folder, teacher, _, _ = trained
    pairs = posed([Source(small_reports(20, seed=11))], "pairs", lengths=(80, 80))
    batch = teacher.batch(pairs, random.Random(0))
    with torch.no_grad():
        opinion = teacher.model(**batch.inputs)
    apart = {}
    for name, hard in (("taught", 0.0), ("alone", 1.0)):
        recipe = recipe_of(folder, layers=1, teacher=str(folder) if name == "taught" else "", hard=hard)
        built = training.build(recipe, "cpu")
        assert built.model.answerer.config.num_hidden_layers == len(built.model.answerer.bert.encoder.layer) == 1
        run = training._Run(built, SOURCES, None, pairs[:20], replace(SCHEDULE, epochs=8), tmp_path / name, print)
        run.run(False)
        with torch.no_grad():
            apart[name] = soft_loss(built.model(**batch.inputs), opinion, batch.allowed, 2.0).item()
    assert apart["taught"] < 0.7 * apart["alone"]


def test_what_cannot_teach_is_named(trained, bert, new_base, tmp_path):
    folder = trained[0]
    with pytest.raises(CaprError, match=rf"{re.escape(str(bert))} is no teacher: it is no reader. Fix: "):
        training.build(recipe_of(bert, teacher=str(bert)), "cpu")
    other = new_base(tmp_path / "other", "roberta")
    with pytest.raises(CaprError, match=r"cannot teach: it cuts texts into other word pieces. Fix: "):
        training.build(recipe_of(other, teacher=str(folder)), "cpu")


def test_training_goes_on_from_what_was_exported_alone(trained, tmp_path):
    folder = trained[0]
    for name in ("model.onnx", "config.json", "tokenizer.json", "manifest.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    whole, small = weights(folder), training.build(recipe_of(tmp_path), "cpu").model.answerer.state_dict()
    for name, weight in whole.items():
        assert torch.allclose(weight, small[name], atol=0.05 * float(weight.abs().max())), name


@pytest.mark.parametrize("share", [0.2, 0.0])
def test_too_few_questions_are_told(bert, tmp_path, share):
    few = [Source(REPORTS[:2] if share else REPORTS)]
    with pytest.raises(
        CaprError, match=r"there are \d+ questions to train on and \d+ to validate with, which is too few"
    ):
        train(few, recipe_of(bert, validation=share), SCHEDULE, tmp_path)


def test_a_reader_of_another_architecture_is_trained_and_exported(roberta, tmp_path):
    scores = train(SOURCES, recipe_of(roberta), replace(SCHEDULE, epochs=2), tmp_path)
    assert scores["as torch, 32 bits"] > 0.95
    assert OnnxReader(tmp_path).read("treatment?", ["the tablets in the night", " "])[1] == []


def test_a_loss_that_is_no_number_names_step_and_remedy(bert, tmp_path):
    with pytest.raises(CaprError, match=r"the loss became nan in step \d+; .* Fix: go on with --resume and a lower"):
        train(SOURCES, recipe_of(bert), replace(SCHEDULE, learning_rate=1e30), tmp_path)


# What is learned from


def test_paragraphs_with_and_without_the_answer_are_balanced():
    text = "".join(f"{word:<10}" for word in "zero one two three four five six seven eight nine".split())
    asked = Asked("1", "which?", (Span(20, 23), Span(62, 65), Span(67, 69)))
    none = Asked("2", "who?", ())
    report = Report(Document("d", text), (asked, none))

    def cut(document):
        return [Span(begin, begin + 10) for begin in range(0, 100, 10)]

    found = posed([Source([report])], "seed", cut)
    right = [one for one in found if one.answers]
    assert sorted((one.paragraph, one.answers) for one in right) == [
        ((20, 30), ((0, 3),)),
        ((60, 70), ((2, 5), (7, 9))),
    ]
    assert {one.golds[0] for one in right} == {"two", "x  "}
    wrong = [one for one in found if not one.answers]
    assert [one.question for one in wrong].count("which?") == 2
    assert [one.question for one in wrong].count("who?") == 1
    assert not {one.paragraph.begin for one in wrong if one.question == "which?"} & {20, 60}
    assert not [one for one in posed([Source([report])], "seed", cut, unanswerable=0) if one.question == "who?"]


def test_the_paragraph_without_the_answer_may_be_the_one_most_like_the_question():
    text = "apixaban was stopped\nblood in the urine\napixaban was given\nhe lives alone    \n"
    asked = Asked("1", "Why was apixaban stopped?", (Span(21, 26),)), Asked("2", "Where is urine and blood?", ())
    lines = [Span(0, 20), Span(21, 39), Span(40, 58), Span(59, 77)]
    report = Report(Document("d", text), asked)

    def wrong(alike):
        found = (
            one for seed in range(20) for one in posed([Source([report])], str(seed), lambda _: lines, alike=alike)
        )
        return {(one.question, lines.index(one.paragraph)) for one in found if not one.answers}

    assert wrong(1.0) == {(asked[0].text, 0), (asked[1].text, 1)}
    assert len(wrong(0.0)) == 7  # any but the one that answers


def test_paragraphs_of_like_length_make_a_batch_and_none_is_lost():
    draw = random.Random(1)
    document = Document("d", "x" * 2000)
    drawn = [Posed(str(number), document, Span(0, draw.randint(1, 2000)), ()) for number in range(999)]
    ordered = by_length(drawn, 16)
    assert sorted(drawn, key=id) == sorted(ordered, key=id)
    sizes = [[one.paragraph.end for one in ordered[place : place + 16]] for place in range(0, 999, 16)]
    assert max(max(some) - min(some) for some in sizes) < 400
    assert [max(some) for some in sizes] != sorted(max(some) for some in sizes)
    assert by_length(drawn, 16) == ordered
    assert by_length([], 16) == []


def test_a_report_of_one_paragraph_has_no_negatives_and_an_empty_question_is_left_out():
    asked = Asked("1", "what?", (Span(0, 4),)), Asked("2", " ", (Span(0, 4),))
    report = Report(Document("d", "rest and drops"), asked)
    assert len(whole_reports([Source([report])], 9, 9, None, 90, "seed")) == 1
    (only,) = posed([Source([report])], "seed")
    assert only.golds == ["rest"]


def test_a_paragraph_with_a_part_of_the_answer_neither_answers_nor_not():
    asked = Asked("1", "what?", (Span(8, 12),))
    found = put_to_all(Document("d", "0123456789" * 3), asked, [Span(0, 10), Span(10, 20), Span(20, 30)])
    assert [one.paragraph for one in found] == [Span(20, 30)]


def test_uniform_paragraphs_cut_no_answer_and_change_with_the_epoch():
    text = "word " * 400
    answers = [Span(begin, begin + 30) for begin in range(100, 1900, 211)]
    report = Report(Document("d", text), tuple(Asked(str(i), "q?", (a,)) for i, a in enumerate(answers)))
    for length in (300, 700, 1500):
        paragraphs = cut_up(report, None, length)
        assert all(any(paragraph.covers(answer) for paragraph in paragraphs) for answer in answers)
    lengths = {
        max(one.paragraph.end - one.paragraph.begin for one in posed([Source([report])], f"1 {epoch}"))
        for epoch in range(6)
    }
    assert len(lengths) > 2
    assert posed([Source([report])], "1 0") == posed([Source([report])], "1 0")


@pytest.mark.parametrize(
    ("weight", "least", "most"), [(1, 100, 100), (3, 300, 300), (0.5, 30, 70), (1.5, 130, 170), (0, 0, 0)]
)
def test_sources_are_drawn_as_often_as_they_weigh(weight, least, most):
    questions = tuple(Asked(str(i), f"{i}?", (Span(0, 4),)) for i in range(100))
    found = posed([Source([Report(Document("d", "rest"), questions)], weight)], "seed")
    assert least <= len(found) <= most


def test_no_report_is_in_both_parts_and_a_source_can_be_kept_out_of_validation():
    learn, held = split([Source(REPORTS), Source(REPORTS[:3], held=False)], 0.3, 1)
    ids = [{report.document.id for report in part[0].reports} for part in (learn, held)]
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == {report.document.id for report in REPORTS}
    assert 0.15 < len(ids[1]) / len(REPORTS) < 0.45
    assert held[1].reports == []
    assert len(learn[1].reports) == 3


def test_whole_reports_have_the_paragraphs_that_answer():
    groups = whole_reports(SOURCES, 1000, 2, None, 30, "seed")
    assert len(groups) == 160
    assert {len(group) for group in groups} <= {1, 2}
    answered = [any(one.answers for one in group) for group in groups]
    assert sum(answered) == sum(bool(asked.answers) for report in REPORTS for asked in report.questions)


# Where an answer stands

WORDS = ("gout", "the", "fever", "naïve", "🫀", "a", "\r\n", "\t", "x" * 120, "2.5", "é", "（", "\u200b", "\x00")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=60), st.data())
def test_an_answer_is_mapped_to_the_pieces_that_have_its_characters(bert, words, data):
    text = data.draw(st.sampled_from([" ", ""])).join(words)
    begin = data.draw(st.integers(0, len(text) - 1))
    answer = Span(begin, data.draw(st.integers(begin + 1, len(text))))
    cutter = cutter_of(bert)
    pieces = cutter.pieces(text)
    wanted = [
        place
        for place, (first, last) in enumerate(pieces.offsets.tolist())
        if set(range(first, last)) & set(range(*answer)) and text[first:last].strip()
    ]
    found = pieces_of(answer, pieces)
    assert found == ((wanted[0], wanted[-1]) if wanted else None)
    whole = 0
    for window in cutter.windows("gout?", text):
        first, last = place_in(window, found)
        inside = found is not None and window.first <= found[0] and found[1] < window.first + window.end - window.begin
        assert (first, last) == ((0, 0) if not inside else (first, last))
        if inside:
            whole += 1
            assert window.begin <= first <= last < window.end
            ids = pieces.ids[found[0] : found[1] + 1]
            assert window.ids[first : last + 1] == ids
    if found is not None and found[1] - found[0] < 4:
        assert whole  # windows share enough pieces that a short answer is whole in one of them


def cutter_of(base) -> Cutter:
    return Cutter(Tokenizer.from_file(str(base / "tokenizer.json")), 20, 6, 8)


def test_a_batch_points_at_the_answer_or_at_cls(bert):
    objective = training.build(recipe_of(bert, pieces=20, stride=6), "cpu")
    text = "the night is of " * 8 + "tablets and rest " + "in days often with " * 8
    begin = text.index("tablets")
    right = Posed("treatment?", Document("d", text), Span(0, len(text)), (Span(begin, begin + 16),))
    wrong = Posed("treatment?", Document("d", text), Span(0, 64), ())
    batch = objective.batch([right, wrong], random.Random(0))
    windows = list(objective.cutter.windows("treatment?", text))
    assert len(windows) > 4
    assert len(batch.places) == 4 + len(list(objective.cutter.windows("treatment?", wrong.text))[:4])
    tokens = [objective.reader.tokenizer.id_to_token(i) for i in batch.inputs["input_ids"][0].tolist()]
    first, last = batch.places[0].tolist()
    assert tokens[first : last + 1] == ["tablets", "and", "rest"]
    assert (batch.places[4:] == 0).all()
    for row, allowed in zip(batch.inputs["input_ids"].tolist(), batch.allowed.tolist(), strict=True):
        said = [objective.reader.tokenizer.id_to_token(i) for i, yes in zip(row, allowed, strict=True) if yes]
        assert said[0] == "[CLS]"
        assert not {"treatment", "?", "[SEP]", "[PAD]"} & set(said)


def test_losses_against_numpy():
    draw = np.random.default_rng(0)
    scores, opinion = draw.normal(size=(2, 3, 6, 2)).astype(np.float32)
    allowed = np.array([[1, 0, 0, 1, 1, 1], [1, 0, 1, 1, 0, 0], [1, 0, 0, 1, 0, 0]], bool)
    places = np.array([[3, 5], [0, 0], [3, 3]])
    hard, soft = [], []
    for row, side in itertools.product(range(3), range(2)):
        mine, theirs = (one[row, allowed[row], side].astype(float) for one in (scores, opinion))
        logs = mine - np.log(np.exp(mine).sum())
        hard.append(-logs[np.nonzero(allowed[row])[0].tolist().index(places[row, side])])
        p, q = (np.exp(one / 2) / np.exp(one / 2).sum() for one in (theirs, mine))
        soft.append(4 * (p * np.log(p / q)).sum())
    tensors = torch.from_numpy(scores), torch.from_numpy(allowed)
    assert hard_loss(tensors[0], torch.from_numpy(places), tensors[1]).item() == pytest.approx(np.mean(hard), abs=1e-5)
    found = soft_loss(tensors[0], torch.from_numpy(opinion), tensors[1], 2.0)
    assert found.item() == pytest.approx(np.mean(soft), abs=1e-5)


def test_the_measures_are_those_of_squad_v2():
    document = Document("d", "He took 500 mg of aspirin.")
    whole = Span(0, len(document.text))
    asked = [Posed("q?", document, whole, (Span(8, 14),))] * 3 + [Posed("q?", document, whole, ())] * 2
    found = [
        Extracted(Span(8, 14), -1.0, -2.0), Extracted(Span(8, 17), -1.0, -2.0), Extracted(Span(8, 14), -2.0, -1.0),
        Extracted(Span(8, 14), -2.0, -1.0), Extracted(Span(8, 14), -1.0, -2.0),
    ]  # fmt: skip
    scores = validated(asked, found)
    assert scores["F1"] == pytest.approx((1 + 0.8 + 0 + 1 + 0) / 5)
    assert scores["EM"] == pytest.approx((1 + 0 + 0 + 1 + 0) / 5)
    assert scores["answered"] == pytest.approx(2 / 3)
    assert scores["refused"] == 0.5
    assert validated(asked[:1], [None])["F1"] == 0


def test_the_network_is_a_linear_layer_on_the_encoder(bert):
    model = SpanReader(load_answerer(str(bert)).eval())
    ids = torch.tensor([[2, 7, 8, 3, 9, 3], [2, 7, 3, 9, 3, 0]])
    mask = (ids > 0).long()
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=mask).numpy()
        states = model.answerer.bert(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
    head = model.answerer.qa_outputs
    wanted = states @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    assert found.shape == (2, 6, 2)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
