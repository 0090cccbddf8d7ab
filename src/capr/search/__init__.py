"""Search: the passages that answer a query, with the evidence, and the answers in them."""

from capr.search.answers import Answer, Answers, Place
from capr.search.asking import ask
from capr.search.curve import Curve, SentenceScore
from capr.search.generative import GenerativeReader
from capr.search.hit import Hit, Neighbour, Results, Sentence, Stage
from capr.search.library import Added, Library
from capr.search.reader import AnswerReader, Reading
from capr.search.rerank import OnnxRanker, Ranker

__all__ = [
    "Added",
    "Answer",
    "AnswerReader",
    "Answers",
    "Curve",
    "GenerativeReader",
    "Hit",
    "Library",
    "Neighbour",
    "OnnxRanker",
    "Place",
    "Ranker",
    "Reading",
    "Results",
    "Sentence",
    "SentenceScore",
    "Stage",
    "ask",
]
