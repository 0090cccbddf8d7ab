"""Search: the passages that answer a query, with the evidence."""

from capr.search.hit import Hit, Neighbour, Results, Sentence, Stage
from capr.search.library import Added, Library
from capr.search.rerank import OnnxRanker, Ranker

__all__ = ["Added", "Hit", "Library", "Neighbour", "OnnxRanker", "Ranker", "Results", "Sentence", "Stage"]
