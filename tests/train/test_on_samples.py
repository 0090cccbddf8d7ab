"""A real training run: the encoder that ships goes on learning from the sample corpus, on a CPU."""

import random

import pytest
import torch

import capr
from capr.annotate.mentions import annotator
from capr.evaluate.terms import Terms
from capr.supervise import Labeller, Pool, labelled
from capr.train.loop import Schedule
from capr.train.objectives import Reading, validated
from capr.train.pairs import Pairs
from capr.train.retrieval import Recipe, build, train

HELD, SEED = 0.3, 1  # of the documents
READING = Reading(negatives=1, pieces=64)
RECIPE = Recipe("bi", "encoder", validation=HELD)


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """Some of the passages of the samples, bare, and what may be asked of each."""
    finder = annotator(with_tagger=False)
    with Pool(labelled(capr.samples.documents(), Labeller(finder))) as pool:
        drawn = Pairs.drawn(pool, finder.gazetteer.vocabulary, rounds=1)
    return Pairs(drawn.passages, random.Random(SEED).sample(drawn.draws, 280))


@pytest.fixture(scope="module")
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.shipped
@pytest.mark.usefixtures("two_threads")
def test_training_on_the_samples_ends_clearly_above_bm25_and_above_where_it_began(pairs, tmp_path):
    _, held = pairs.split(HELD, SEED)
    lists = list(held.lists(64, 500, SEED))
    schedule = Schedule(epochs=1, batch=16, learning_rate=3e-5, patience=0, seed=SEED, device="cpu")
    began = validated(build(Pairs([], []), RECIPE, READING, "cpu"), held, lists)
    scores = train(pairs, RECIPE, READING, schedule, tmp_path / "bi", onnx=False)
    words = Terms({str(number): text.text for number, text in enumerate(held.passages)})
    first = 0
    for query, candidates, answers in lists:
        found = words.scores(query)
        first += max(candidates, key=found.__getitem__) in answers
    assert scores["R@1"] > first / len(lists) + 0.1
    assert scores["R@1"] > began["R@1"]
    assert scores["R@5"] > began["R@5"]
