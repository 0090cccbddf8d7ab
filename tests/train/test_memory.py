"""Batches in parts: less memory, the same gradients."""

import random

import pytest
import torch

from capr.documents import Document, Span
from capr.models.bi import Bi
from capr.models.cross import Cross
from capr.models.family import Schedule
from capr.models.memory import read_parts
from capr.models.poly import Poly
from capr.models.reader import ReaderFamily
from capr.supervise.paragraph_questions import ParagraphQuestion

READING = {"negatives": 2, "pieces": 32, "views": (("text", 1.0),), "short": 0.0}
FAMILIES = {
    "bi": lambda base: Bi(base=base, dimensions=(32, 16), **READING),
    "separate": lambda base: Bi(base=base, shared=False, pooling="mean", **READING),
    "poly": lambda base: Poly(base=base, scaled=True, **READING),
    "codes": lambda base: Poly(base=base, codes=3, **READING),
    "cross": lambda base: Cross(base=base, **READING),
}


def gradients(objective, batch) -> dict[str, torch.Tensor]:
    objective.model.train().zero_grad()
    torch.manual_seed(0)
    objective.loss(batch).backward()
    return {name: p.grad.clone() for name, p in objective.model.named_parameters() if p.grad is not None}


def built(make, limit):
    torch.manual_seed(1)
    return make(limit)


def assert_alike(make, batch_of):
    whole, divided = (built(make, limit) for limit in (0, 64))
    expected, actual = (gradients(objective, batch_of(objective)) for objective in (whole, divided))
    assert expected.keys() == actual.keys()
    assert any(gradient.abs().max() > 1e-4 for gradient in expected.values())
    for name, gradient in expected.items():
        torch.testing.assert_close(actual[name], gradient, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_gradient_of_a_batch_in_parts_is_that_of_the_whole(bert, world, name):
    family = FAMILIES[name](str(bert))

    def batch_of(objective):
        return objective.batch(world.draws[:12], random.Random(0))

    assert_alike(lambda limit: family.objective(world, "cpu", limit), batch_of)


def test_the_gradient_of_a_reader_in_parts_is_that_of_the_whole(bert):
    text = "the night is of tablets and rest in days often with " * 3
    posed = [
        ParagraphQuestion("treatment?", Document(str(n), text), Span(0, 40 + 20 * n), (Span(16, 23),)) for n in range(5)
    ]
    family = ReaderFamily(base=str(bert), pieces=24, stride=6, question=8)
    groups = [[question] for question in posed]  # a question with its own paragraph alone
    assert_alike(lambda limit: family.objective("cpu", limit), lambda reader: reader.batch(groups, random.Random(0)))


def test_the_gradient_of_a_reader_that_scores_paragraphs_is_the_same_in_parts(bert):
    text = "the night is of tablets and rest in days often with " * 3
    groups = [
        [
            ParagraphQuestion("treatment?", Document(f"{n}", text), Span(0, 40 + 20 * n), (Span(16, 23),)),
            ParagraphQuestion("treatment?", Document(f"{n}", text), Span(30, 60 + 20 * n), ()),
        ]
        for n in range(3)
    ]
    family = ReaderFamily(base=str(bert), pieces=24, stride=6, question=8, negative_paragraphs=1)
    assert_alike(lambda limit: family.objective("cpu", limit), lambda reader: reader.batch(groups, random.Random(0)))


def test_dropout_is_the_same_when_a_part_is_computed_again(new_base, world, tmp_path):
    """The loss falls, which it would not if the gradient had another dropout."""
    base = new_base(tmp_path / "base", dropout=0.5)
    objective = built(lambda limit: Cross(base=str(base), **READING).objective(world, "cpu", limit), 64)
    batch = objective.batch(world.draws[:12], random.Random(0))
    actual = gradients(objective, batch)
    name = "classifier.classifier.weight"
    slope = actual[name]
    weight = dict(objective.model.named_parameters())[name]
    losses = []
    for step in (-1e-3, 1e-3):
        with torch.no_grad():
            weight += step * slope / slope.norm()
            torch.manual_seed(0)
            losses.append(float(objective.loss(batch)))
            weight -= step * slope / slope.norm()
    assert (losses[1] - losses[0]) / 2e-3 == pytest.approx(float(slope.norm()), rel=0.05)


def test_no_more_than_the_limit_is_read_at_once_and_no_row_is_cut():
    seen = []

    def network(ids):
        seen.append(tuple(ids.shape))
        return ids.sum(1)

    parts = [{"ids": torch.ones(5, 4)}, {"ids": torch.ones(3, 30)}]
    whole = torch.cat(read_parts(network, parts, 0))
    assert seen == [(5, 4), (3, 30)]
    seen.clear()
    assert torch.equal(torch.cat(read_parts(network, parts, 10)), whole)
    assert seen == [(2, 4), (2, 4), (1, 4), (1, 30), (1, 30), (1, 30)]


def test_the_default_limit_is_for_a_cpu_only():
    assert Schedule(device="cpu").limit == 2048
    assert Schedule(device="cuda").limit == 0
    assert Schedule(device="cuda", max_pieces_per_pass=512).limit == 512
    assert Schedule(device="cpu", max_pieces_per_pass=0).limit == 0
