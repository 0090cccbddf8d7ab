"""Training examples that capr makes from documents, without manual labels."""

from capr.deprecation import renamed_attributes
from capr.supervise.examples import Example, Negative, batches, examples, false_negatives
from capr.supervise.labels import Labeller, Labels, labelled
from capr.supervise.pool import Pool, PoolPassage

__all__ = [
    "Example",
    "Labeller",
    "Labels",
    "Negative",
    "Pool",
    "PoolPassage",
    "batches",
    "examples",
    "false_negatives",
    "labelled",
]

__getattr__ = renamed_attributes(__name__, {"Record": "PoolPassage"})
