"""The sources of training data for `capr train`: one file per kind, with its options.

A family names its source by `learns_from`, a key of `SOURCES`. A source is a frozen dataclass, and its fields are
options: `load` reads the training data, `train` trains a model on them, and `summary` formats the scores as a line.
"""

from __future__ import annotations

from typing import Any

from capr import registry

SOURCES = {
    "pairs": "capr.cli.sources.pairs:PairSource",
    "discourses": "capr.cli.sources.discourses:DiscourseSource",
    "reports": "capr.cli.sources.reports:ReportSource",
    "corpora": "capr.cli.sources.corpora:CorpusSource",
}


def source(name: str) -> Any:
    """Return the class of a source."""
    return registry.load(SOURCES[name])
