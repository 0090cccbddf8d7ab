"""Training examples made from documents themselves: no person labels anything."""

from capr.supervise.examples import Example, Negative, batches, examples, false_negatives
from capr.supervise.labels import Labeller, Labels, labelled
from capr.supervise.pool import Pool, Record

__all__ = [
    "Example", "Labeller", "Labels", "Negative", "Pool", "Record", "batches", "examples", "false_negatives", "labelled",
]  # fmt: skip
