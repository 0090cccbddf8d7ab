"""Search: find the passages that answer a query, with their evidence, and the answers in them."""

from capr.deprecation import renamed_attributes
from capr.runtime.generative import GenerativeReader
from capr.runtime.ranker import OnnxRanker, Ranker
from capr.runtime.reader import AnswerReader, ReadAnswer
from capr.search.adding import AddResult
from capr.search.answers import Answer, Answers, Place
from capr.search.asking import ask
from capr.search.curve import Curve, SentenceScore
from capr.search.hit import Hit, Neighbour, Results, Sentence, Stage
from capr.search.library import Library
from capr.search.listing import Listing
from capr.search.resources import Resources

__all__ = [
    "AddResult",
    "Answer",
    "AnswerReader",
    "Answers",
    "Curve",
    "GenerativeReader",
    "Hit",
    "Library",
    "Listing",
    "Neighbour",
    "OnnxRanker",
    "Place",
    "Ranker",
    "ReadAnswer",
    "Resources",
    "Results",
    "Sentence",
    "SentenceScore",
    "Stage",
    "ask",
]

__getattr__ = renamed_attributes(__name__, {"Added": "AddResult", "Reading": "ReadAnswer"})
