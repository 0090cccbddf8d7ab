"""The training loop: learning, resuming and stopping."""

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
from small_families import SCHEDULE, family, same, weights

from capr.documents import CaprError
from capr.models.ranking import validation_scores
from capr.supervise.pairs import Draw, LabelledPassage, TrainingPairs
from capr.train.loop import CHECKPOINT
from capr.train.ranking import fit

LEARNING = {
    "bi": ({"temperature": 0.1}, 1, {"epochs": 12, "learning_rate": 3e-3}),
    "poly": ({"temperature": 1.0, "similarity": "dot", "scaled": True}, 1, {"epochs": 12, "learning_rate": 2e-3}),
    "cross": ({}, 5, {"epochs": 60, "learning_rate": 2e-3}),
}


@pytest.mark.parametrize("kind", LEARNING)
def test_the_loss_falls_and_unseen_documents_are_ranked_well(build, parts, kind):
    _, held_out, lists = parts
    options, negatives, changes = LEARNING[kind]
    objective = build(kind, negatives=negatives, **options)
    reports = []
    best = fit(objective, replace(SCHEDULE, **changes), (held_out, lists), None, False, reports.append)
    losses = [report.loss for report in reports]
    assert sum(losses[-5:]) < 0.6 * sum(losses[:5])
    chance = sum(len(answers) / len(candidates) for _, candidates, answers in lists) / len(lists)
    assert chance < 0.15
    assert best["R@1"] > 0.3
    assert best["R@5"] >= best["R@1"]
    assert validation_scores(objective, held_out, lists) == best


def test_the_same_seed_gives_the_same_weights(build, new_base, tmp_path):
    base = new_base(tmp_path / "base", dropout=0.1)
    actual = []
    for seed in (1, 1, 2):
        objective = build(base=base)
        fit(objective, replace(SCHEDULE, seed=seed), None)
        actual.append(weights(objective))
    assert same(actual[0], actual[1])
    assert not same(actual[0], actual[2])


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("kind", ["bi", "poly", "cross"])
def test_an_interrupted_run_ends_like_an_uninterrupted_one(build, parts, tmp_path, kind, judged):
    whole, broken, again = build(kind), build(kind), build(kind)
    validation = parts[1:] if judged else None
    expected = fit(whole, SCHEDULE, validation, None)

    def stop(report):
        if report.step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(broken, SCHEDULE, validation, tmp_path, False, stop)
    assert (tmp_path / CHECKPOINT).is_file()
    steps = []
    actual = fit(again, SCHEDULE, validation, tmp_path, True, lambda report: steps.append(report.step))
    assert min(steps) > 8
    assert actual == expected
    assert same(weights(again), weights(whole))
    assert judged or not same(weights(again), weights(broken))


def test_a_run_interrupted_within_an_epoch_continues_from_the_last_checkpoint(build, tmp_path):
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


def test_without_a_checkpoint_resume_starts_again(build, tmp_path):
    fresh, resumed = build(), build()
    fit(fresh, SCHEDULE, None)
    fit(resumed, SCHEDULE, None, tmp_path / "new", True)
    assert same(weights(fresh), weights(resumed))


def test_a_checkpoint_of_another_seed_or_model_is_refused(build, parts, tmp_path):
    fit(build(), replace(SCHEDULE, epochs=1), parts[1:], tmp_path)
    fact = f"{tmp_path / CHECKPOINT} belongs to a run with other settings. Fix: "
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
def test_the_fix_of_an_error_works_on_resume(build, parts, tmp_path, schedule, reading):
    objective = build()
    failing(objective, 6, lambda loss: loss * math.nan)
    with pytest.raises(CaprError):
        fit(objective, SCHEDULE, parts[1:], tmp_path)
    reports = []
    again = build(**reading)
    fit(again, replace(SCHEDULE, **schedule), parts[1:], tmp_path, True, reports.append)
    assert reports[0].step > 4
    assert reports[-1].step == reports[-1].steps


def test_a_damaged_checkpoint_raises_an_error(build, parts, tmp_path):
    (tmp_path / CHECKPOINT).write_bytes(b"PK nothing of the kind")
    with pytest.raises(CaprError, match="is damaged"):
        fit(build(), SCHEDULE, parts[1:], tmp_path, True)


def test_dropout_is_the_same_after_resume(build, new_base, tmp_path):
    base = new_base(tmp_path / "base", dropout=0.1)
    whole, broken, again = (build(base=base) for _ in range(3))
    fit(whole, SCHEDULE, None)

    def stop(report):
        if report.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(broken, SCHEDULE, None, tmp_path, False, stop)
    fit(again, SCHEDULE, None, tmp_path, True)
    assert same(weights(whole), weights(again))


def test_a_gradient_that_is_not_finite_does_not_reach_the_weights(build, parts, tmp_path):
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


def test_a_loss_that_is_not_finite_names_step_checkpoint_and_fix(build, parts, tmp_path):
    objective = build()
    failing(objective, 6, lambda loss: loss * math.nan)
    fact = f"the loss became nan in step 6; the last checkpoint is {tmp_path / CHECKPOINT}. Fix: continue with --resume and a lower"
    with pytest.raises(CaprError, match=re.escape(fact)):
        fit(objective, SCHEDULE, parts[1:], tmp_path)
    checkpoint = torch.load(tmp_path / CHECKPOINT, weights_only=True)
    assert checkpoint["step"] == 4
    assert all(value.isfinite().all() for value in checkpoint["model"].values())
    assert all(value.isfinite().all() for value in objective.model.state_dict().values())


def test_a_loss_that_is_not_finite_from_the_start_names_no_checkpoint(build, parts, tmp_path):
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


def test_training_stops_without_improvement_and_keeps_the_best_weights(build, parts, monkeypatch):
    values = iter([0.2, 0.5, 0.5, 0.1, 0.9])
    snapshots = []

    def scored(objective, *_):
        snapshots.append(weights(objective))
        return {"R@1": next(values), "R@5": 1.0}

    monkeypatch.setattr("capr.train.ranking.validation_scores", scored)
    objective = build()
    reports = []
    best = fit(objective, replace(SCHEDULE, epochs=9, patience=2), parts[1:], None, False, reports.append)
    assert best == {"R@1": 0.5, "R@5": 1.0}
    assert [report.scores["R@1"] for report in reports if report.scores] == [0.2, 0.5, 0.5, 0.1]
    assert reports[-1].step == 16
    assert reports[-1].steps == 36
    assert same(weights(objective), snapshots[1])


def test_a_batch_ignores_passages_that_may_also_answer(build, parts):
    training = parts[0]
    objective = build(negatives=2)
    queries, numbers, answers, left_out = objective.collect(training.draws, random.Random(0))
    assert len(queries) == len(training.draws)
    assert len(set(numbers)) == len(numbers)
    for row, draw in enumerate(training.draws):
        assert numbers[answers[row]] == draw.passage
        out = {numbers[place] for place in left_out[row].nonzero()[:, 0].tolist()}
        assert out == (training.answering(draw) & set(numbers)) - {draw.passage}
    assert left_out.any()


def test_the_negatives_of_a_cross_encoder_do_not_answer(build, parts):
    training = parts[0]
    objective = build("cross", negatives=6)
    batch = objective.batch(training.draws[:4], random.Random(0))
    ids = [row[mask.bool()] for p in batch.parts for row, mask in zip(p["input_ids"], p["attention_mask"], strict=True)]
    texts = [objective.tokenizer.base_tokenizer.decode(ids[i].tolist()).removesuffix(" [SEP]") for i in batch.inverse]
    assert len(texts) == 4 * 7
    for row, draw in enumerate(training.draws[:4]):
        own_texts = texts[row * 7 : row * 7 + 7]
        answers = [training.passages[number].text for number in training.answering(draw)]
        assert own_texts[0].endswith(training.passages[draw.passage].text)
        assert not [text for text in own_texts[1:] if text.endswith(tuple(answers))]


def test_fewer_passages_than_a_batch_are_one_step(build, bert):
    few = TrainingPairs(
        [LabelledPassage(str(i), "", "", "gout pain") for i in range(3)], [Draw(i, "", "", ("gout",)) for i in range(3)]
    )
    objective = family("bi", bert).objective(few, "cpu")
    reports = []
    fit(objective, replace(SCHEDULE, epochs=2), None, None, False, reports.append)
    assert [report.step for report in reports] == [1, 2]


SCRIPT = """
import importlib.util, os, sys
import torch
from pathlib import Path
torch.set_num_threads(1)
from capr.models.bi import Bi
from capr.models.family import Schedule
from capr.train.ranking import fit
from capr.train.parallel import parallel, wait_for_all
from capr.supervise.pairs import TrainingPairs

pairs, base, out = sys.argv[1:]
with parallel() as first:
    assert first == (os.environ["RANK"] == "0")
    wait_for_all()
    training, held_out = TrainingPairs.load(Path(pairs)).split(0.3, 1)
    torch.manual_seed(1)
    objective = Bi(base=base, negatives=1, pieces=32, views=(("text", 1.0),), short=0.0).objective(training, "cpu")
    schedule = Schedule(epochs=1, batch=8, learning_rate=1e-3, patience=0, device="cpu")
    scores = fit(objective, schedule, (held_out, list(held_out.lists(12, 40, 1))), Path(out) / "checkpoint")
    torch.save((objective.model.state_dict(), scores), Path(out) / f"{os.environ['RANK']}.pt")
"""


def test_two_processes_end_with_the_same_weights(world, bert, build, tmp_path):
    world.save(tmp_path / "a.pairs.gz")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []
    for rank in range(2):
        variables = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "a.pairs.gz"), str(bert), str(tmp_path)]
        running.append(subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True))
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], errors
    (first_weights, first_scores), (second_weights, second_scores) = (
        torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2)
    )
    assert same(first_weights, second_weights)
    assert first_scores == second_scores
    initial_weights = weights(build())
    assert not same(first_weights, initial_weights)
    assert [path.name for path in Path(tmp_path / "checkpoint").iterdir()] == [CHECKPOINT]
