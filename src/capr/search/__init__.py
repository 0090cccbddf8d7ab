"""Search: the passages that answer a query, with the evidence."""

from capr.search.curve import Curve, SentenceScore
from capr.search.hit import Hit, Neighbour, Results, Sentence, Stage
from capr.search.library import Added, Library
from capr.search.rerank import OnnxRanker, Ranker

__all__ = [
    "Added",
    "Curve",
    "Hit",
    "Library",
    "Neighbour",
    "OnnxRanker",
    "Ranker",
    "Results",
    "Sentence",
    "SentenceScore",
    "Stage",
]
