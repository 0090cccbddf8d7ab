"""A real training run: the built-in encoder learns from the sample corpus on a CPU."""

import random

import pytest
import torch

import capr
from capr.annotate.mentions import annotator
from capr.evaluate.term_baselines import Terms
from capr.models.bi import Bi
from capr.models.family import Schedule
from capr.models.ranking import validation_scores
from capr.supervise import Labeller, Pool, labelled
from capr.supervise.pairs import TrainingPairs
from capr.train.ranking import train

HELD, SEED = 0.3, 1  # of the documents
FAMILY = Bi(base="encoder", negatives=1, pieces=64, views=(("text", 1.0),), short=0.0, validation=HELD)


@pytest.fixture(scope="module")
def pairs() -> TrainingPairs:
    """Some passages of the samples without headings, and their queries."""
    finder = annotator(with_tagger=False)
    with Pool(labelled(capr.samples.documents(), Labeller(finder))) as pool:
        all_pairs = TrainingPairs.from_pool(pool, finder.gazetteer.vocabulary, rounds=1)
    return TrainingPairs(all_pairs.passages, random.Random(SEED).sample(all_pairs.draws, 280))


@pytest.fixture(scope="module")
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.shipped
@pytest.mark.usefixtures("two_threads")
def test_training_on_the_samples_ends_clearly_above_bm25_and_above_where_it_began(pairs, tmp_path):
    _, held_out = pairs.split(HELD, SEED)
    lists = list(held_out.lists(64, 500, SEED))
    schedule = Schedule(epochs=1, batch=16, learning_rate=3e-5, patience=0, seed=SEED, device="cpu")
    began = validation_scores(FAMILY.objective(TrainingPairs([], []), "cpu"), held_out, lists)
    scores = train(pairs, FAMILY, schedule, tmp_path / "bi", onnx=False)
    words = Terms({str(number): text.text for number, text in enumerate(held_out.passages)})
    first = 0
    for query, candidates, answers in lists:
        actual = words.scores(query)
        first += max(candidates, key=actual.__getitem__) in answers
    assert scores["R@1"] > first / len(lists) + 0.1
    assert scores["R@1"] > began["R@1"]
    assert scores["R@5"] > began["R@5"]
