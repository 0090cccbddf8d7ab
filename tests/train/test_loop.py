"""The loop: learning, going on, stopping."""

import math
import os
import random
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from capr.documents import CaprError
from capr.train import retrieval
from capr.train.loop import CHECKPOINT, Schedule, fit
from capr.train.losses import taught
from capr.train.objectives import Reading, validated
from capr.train.pairs import Draw, Pairs, Text
from capr.train.retrieval import Recipe

SCHEDULE = Schedule(epochs=3, batch=8, learning_rate=1e-3, patience=0, device="cpu")
READING = Reading(negatives=1, pieces=32)


@pytest.fixture(scope="module")
def parts(world):
    learn, held = world.split(0.3, 1)
    return learn, held, list(held.lists(12, 40, 1))


@pytest.fixture
def build(bert, parts):
    def built(kind="bi", reading=READING, **options):
        torch.manual_seed(1)
        return retrieval.build(parts[0], Recipe(kind, str(options.pop("base", bert)), **options), reading, "cpu")

    return built


def weights(objective) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in objective.model.state_dict().items()}


def same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


LEARNING = {
    "bi": ({"temperature": 0.1}, 1, {"epochs": 12, "learning_rate": 3e-3}),
    "poly": ({"temperature": 1.0, "similarity": "dot", "scaled": True}, 1, {"epochs": 12, "learning_rate": 2e-3}),
    "cross": ({}, 5, {"epochs": 60, "learning_rate": 2e-3}),
}


@pytest.mark.parametrize("kind", LEARNING)
def test_the_loss_falls_and_unseen_documents_are_ranked_well(build, parts, kind):
    _, held, lists = parts
    options, negatives, changes = LEARNING[kind]
    objective = build(kind, replace(READING, negatives=negatives), **options)
    reports = []
    best = fit(objective, replace(SCHEDULE, **changes), (held, lists), None, False, reports.append)
    losses = [report.loss for report in reports]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    chance = sum(len(answers) / len(candidates) for _, candidates, answers in lists) / len(lists)
    assert chance < 0.15
    assert best["R@1"] > 0.3
    assert best["R@5"] >= best["R@1"]
    assert validated(objective, held, lists) == best


def test_the_same_seed_gives_the_same_weights(build, new_base, tmp_path):
    base = new_base(tmp_path / "base", dropout=0.1)
    found = []
    for seed in (1, 1, 2):
        objective = build(base=base)
        fit(objective, replace(SCHEDULE, seed=seed), None)
        found.append(weights(objective))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("kind", ["bi", "poly", "cross"])
def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(build, parts, tmp_path, kind, judged):
    whole, broken, again = build(kind), build(kind), build(kind)
    validation = parts[1:] if judged else None
    wanted = fit(whole, SCHEDULE, validation, None)

    def stop(report):
        if report.step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(broken, SCHEDULE, validation, tmp_path, False, stop)
    assert (tmp_path / CHECKPOINT).is_file()
    steps = []
    found = fit(again, SCHEDULE, validation, tmp_path, True, lambda report: steps.append(report.step))
    assert min(steps) > 8
    assert found == wanted
    assert same(weights(again), weights(whole))
    assert judged or not same(weights(again), weights(broken))


def test_what_was_interrupted_within_an_epoch_goes_on_from_the_last_checkpoint(build, tmp_path):
    whole, broken, again = build(), build(), build()
    fit(whole, SCHEDULE, None, None)
    loss, done = broken.loss, []

    def breaking(batch):
        done.append(1)
        if len(done) == 7:
            raise KeyboardInterrupt
        return loss(batch)

    broken.loss = breaking
    with pytest.raises(KeyboardInterrupt):
        fit(broken, SCHEDULE, None, tmp_path)
    fit(again, SCHEDULE, None, tmp_path, True)
    assert same(weights(again), weights(whole))


def test_without_a_checkpoint_resume_begins_anew(build, tmp_path):
    one, two = build(), build()
    fit(one, SCHEDULE, None)
    fit(two, SCHEDULE, None, tmp_path / "new", True)
    assert same(weights(one), weights(two))


def test_a_checkpoint_of_another_seed_or_model_is_refused(build, parts, tmp_path):
    fit(build(), replace(SCHEDULE, epochs=1), parts[1:], tmp_path)
    fact = f"{tmp_path / CHECKPOINT} is of a run with other settings. Fix: "
    with pytest.raises(CaprError, match=re.escape(fact)):
        fit(build(), replace(SCHEDULE, epochs=1, seed=3), parts[1:], tmp_path, True)
    another = build()
    another.model.temperature = 0.5
    with pytest.raises(CaprError, match=re.escape(fact)):
        fit(another, replace(SCHEDULE, epochs=1), parts[1:], tmp_path, True)


@pytest.mark.parametrize(
    ("schedule", "reading"),
    [({"learning_rate": 1e-5}, {}), ({"batch": 4}, {}), ({}, {"pieces": 24}), ({}, {"negatives": 1})],
)
def test_what_an_error_advises_can_be_done_on_resume(build, parts, tmp_path, schedule, reading):
    objective = build()
    failing(objective, 6, lambda loss: loss * math.nan)
    with pytest.raises(CaprError):
        fit(objective, SCHEDULE, parts[1:], tmp_path)
    reports = []
    again = build(reading=replace(READING, **reading))
    fit(again, replace(SCHEDULE, **schedule), parts[1:], tmp_path, True, reports.append)
    assert reports[0].step > 4
    assert reports[-1].step == reports[-1].steps


def test_a_damaged_checkpoint_is_told(build, parts, tmp_path):
    (tmp_path / CHECKPOINT).write_bytes(b"PK nothing of the kind")
    with pytest.raises(CaprError, match="is damaged"):
        fit(build(), SCHEDULE, parts[1:], tmp_path, True)


def test_dropout_is_the_same_after_resume(build, new_base, tmp_path):
    base = new_base(tmp_path / "base", dropout=0.1)
    one, two, three = (build(base=base) for _ in range(3))
    fit(one, SCHEDULE, None)

    def stop(report):
        if report.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(two, SCHEDULE, None, tmp_path, False, stop)
    fit(three, SCHEDULE, None, tmp_path, True)
    assert same(weights(one), weights(three))


def test_a_gradient_that_is_no_number_does_not_reach_the_weights(build, parts, tmp_path):
    objective = build()

    def ruined(loss):
        loss.register_hook(lambda gradient: gradient * math.inf)
        return loss

    failing(objective, 4, ruined)
    with pytest.raises(CaprError, match="the loss became nan in step 4"):
        fit(objective, SCHEDULE, parts[1:], tmp_path)
    assert all(value.isfinite().all() for value in objective.model.state_dict().values())


def failing(objective, step, failure):
    loss, done = objective.loss, []

    def replaced(batch):
        done.append(1)
        return failure(loss(batch)) if len(done) == step else loss(batch)

    objective.loss = replaced


def test_a_loss_that_is_no_number_names_step_checkpoint_and_remedy(build, parts, tmp_path):
    objective = build()
    failing(objective, 6, lambda loss: loss * math.nan)
    fact = f"the loss became nan in step 6; the last checkpoint is {tmp_path / CHECKPOINT}. Fix: go on with --resume and a lower"
    with pytest.raises(CaprError, match=re.escape(fact)):
        fit(objective, SCHEDULE, parts[1:], tmp_path)
    kept = torch.load(tmp_path / CHECKPOINT, weights_only=True)
    assert kept["step"] == 4
    assert all(value.isfinite().all() for value in kept["model"].values())
    assert all(value.isfinite().all() for value in objective.model.state_dict().values())


def test_a_loss_that_is_no_number_from_the_start_says_that_there_is_no_checkpoint(build, parts, tmp_path):
    objective = build()
    failing(objective, 1, lambda loss: loss * math.inf)
    with pytest.raises(CaprError, match=r"the loss became inf in step 1; there is no checkpoint yet. Fix: "):
        fit(objective, SCHEDULE, parts[1:], tmp_path)


def test_a_full_memory_names_step_checkpoint_and_remedy(build, parts, tmp_path):
    def full(loss):
        raise torch.OutOfMemoryError("CUDA out of memory")

    objective = build()
    failing(objective, 6, full)
    fact = f"no memory left in step 6; the last checkpoint is {tmp_path / CHECKPOINT}. Fix: --resume with a smaller --batch than 8"
    with pytest.raises(CaprError, match=re.escape(fact)):
        fit(objective, SCHEDULE, parts[1:], tmp_path)
    assert torch.load(tmp_path / CHECKPOINT, weights_only=True)["step"] == 4


def test_training_stops_when_it_gets_no_better_and_keeps_the_best(build, parts, monkeypatch):
    given = iter([0.2, 0.5, 0.5, 0.1, 0.9])
    kept = []

    def scored(objective, *_):
        kept.append(weights(objective))
        return {"R@1": next(given), "R@5": 1.0}

    monkeypatch.setattr("capr.train.loop.validated", scored)
    objective = build()
    reports = []
    best = fit(objective, replace(SCHEDULE, epochs=9, patience=2), parts[1:], None, False, reports.append)
    assert best == {"R@1": 0.5, "R@5": 1.0}
    assert [report.scores["R@1"] for report in reports if report.scores] == [0.2, 0.5, 0.5, 0.1]
    assert reports[-1].step == 16
    assert reports[-1].steps == 36
    assert same(weights(objective), kept[1])


def test_a_batch_leaves_out_what_may_answer_as_well(build, parts):
    learn = parts[0]
    objective = build(reading=replace(READING, negatives=2))
    queries, numbers, answers, left_out = objective._flat(learn.draws, random.Random(0))
    assert len(queries) == len(learn.draws)
    assert len(set(numbers)) == len(numbers)
    for row, draw in enumerate(learn.draws):
        assert numbers[answers[row]] == draw.passage
        out = {numbers[place] for place in left_out[row].nonzero()[:, 0].tolist()}
        assert out == (learn.answering(draw) & set(numbers)) - {draw.passage}
    assert left_out.any()


def test_the_passages_of_a_cross_encoder_that_are_no_answers_do_not_answer(build, parts):
    learn = parts[0]
    objective = build("cross", replace(READING, negatives=6))
    batch = objective.batch(learn.draws[:4], random.Random(0))
    ids = [
        row[mask.bool()] for p in batch.passages for row, mask in zip(p["input_ids"], p["attention_mask"], strict=True)
    ]
    said = [objective.reader.tokenizer.decode(ids[i].tolist()).removesuffix(" [SEP]") for i in batch.back]
    assert len(said) == 4 * 7
    for row, draw in enumerate(learn.draws[:4]):
        mine = said[row * 7 : row * 7 + 7]
        answers = [learn.passages[number].text for number in learn.answering(draw)]
        assert mine[0].endswith(learn.passages[draw.passage].text)
        assert not [text for text in mine[1:] if text.endswith(tuple(answers))]


@pytest.fixture(scope="module")
def teacher(bert, parts, tmp_path_factory):
    """A cross-encoder with an opinion of its own, as `capr train cross` leaves it."""
    folder = tmp_path_factory.mktemp("teacher")
    torch.manual_seed(5)
    objective = retrieval.build(parts[0], Recipe("cross", str(bert)), READING, "cpu")
    with torch.no_grad():
        objective.model.classifier.classifier.weight *= 20
    objective.reader.tokenizer.save(str(folder / "tokenizer.json"))
    retrieval.keep(objective, Recipe("cross", str(bert)), folder)
    retrieval.write_manifest(objective, Recipe("cross", str(bert)), folder)
    return folder


def apart(student, teacher, lists, held) -> float:
    student.model.eval()
    ours, theirs = (torch.tensor(one.ranked(held, lists, "text")) for one in (student, teacher))
    return taught(ours, theirs).item()


def test_a_smaller_cross_encoder_comes_near_its_teacher(build, parts, teacher):
    _, held, lists = parts
    student = build("cross", replace(READING, negatives=5), layers=1, teachers=(str(teacher),), hard=0.0)
    assert student.model.classifier.config.num_hidden_layers == len(student.model.classifier.bert.encoder.layer) == 1
    judge = retrieval.load_teacher(str(teacher), "cpu")
    assert not judge.model.training
    before, kept = apart(student, judge, lists, held), weights(judge)
    fit(student, replace(SCHEDULE, epochs=10, learning_rate=2e-3), None)
    assert apart(student, judge, lists, held) < 0.5 * before
    assert same(weights(student.teachers[0]), kept)


def test_a_bi_encoder_comes_near_its_teacher(build, parts, teacher):
    learn, _, _ = parts
    lists = list(learn.lists(8, 30, 1))
    judge = retrieval.load_teacher(str(teacher), "cpu")
    near = {}
    for name, teachers in (("taught", (str(teacher),)), ("alone", ())):
        student = build(teachers=teachers, temperature=0.1)
        fit(student, replace(SCHEDULE, epochs=10, learning_rate=2e-3), None)
        near[name] = apart(student, judge, lists, learn)
    assert near["taught"] < 0.7 * near["alone"]


def test_what_is_no_teacher_is_named(build, bert):
    with pytest.raises(CaprError, match=rf"{re.escape(str(bert))} is no teacher: it has no torch. Fix: "):
        build(teachers=(str(bert),))


def test_fewer_passages_than_a_batch_are_one_step(build, bert):
    few = Pairs([Text(str(i), "", "", "gout pain") for i in range(3)], [Draw(i, "", "", ("gout",)) for i in range(3)])
    objective = retrieval.build(few, Recipe("bi", str(bert)), READING, "cpu")
    reports = []
    fit(objective, replace(SCHEDULE, epochs=2), None, None, False, reports.append)
    assert [report.step for report in reports] == [1, 2]


SCRIPT = """
import importlib.util, os, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from capr.train import retrieval
from capr.train.loop import Schedule, fit
from capr.train.objectives import Reading
from capr.train.parallel import parallel, together
from capr.train.pairs import Pairs

pairs, base, out = sys.argv[1:]
with parallel() as first:
    assert first == (os.environ["RANK"] == "0")
    together()
    learn, held = Pairs.load(Path(pairs)).split(0.3, 1)
    torch.manual_seed(1)
    objective = retrieval.build(learn, retrieval.Recipe("bi", base), Reading(negatives=1, pieces=32), "cpu")
    schedule = Schedule(epochs=1, batch=8, learning_rate=1e-3, patience=0, device="cpu")
    scores = fit(objective, schedule, (held, list(held.lists(12, 40, 1))), Path(out) / "checkpoint")
    torch.save((objective.model.state_dict(), scores), Path(out) / f"{os.environ['RANK']}.pt")
"""


def test_two_processes_end_with_the_same_weights(world, bert, build, tmp_path):
    world.save(tmp_path / "a.pairs.gz")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []
    for rank in range(2):
        told = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "a.pairs.gz"), str(bert), str(tmp_path)]
        running.append(subprocess.Popen(command, env={**os.environ, **told}, stderr=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    (one, first), (two, second) = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert same(one, two)
    assert first == second
    begun = weights(build())
    assert not same(one, begun)
    assert [path.name for path in Path(tmp_path / "checkpoint").iterdir()] == [CHECKPOINT]
