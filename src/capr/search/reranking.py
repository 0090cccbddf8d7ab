"""Re-rank candidates: by late interaction, which compares vectors of word pieces, and by a ranker, which reads."""

from __future__ import annotations

from collections.abc import Sequence

from capr.documents import Span
from capr.index import Index, PassageKey, PassageMatch, StoredPassage
from capr.index.prepare import wording
from capr.runtime import inputs, late
from capr.runtime.onnx import Floats
from capr.runtime.ranker import Ranker, rank
from capr.search.consistency import is_current
from capr.search.evidence import BEST
from capr.search.hit import Sentence

COMPARED = 200  # passages whose word pieces are compared with those of the query
RERANKED = 32  # passages that a ranker reads
RERANKED_AFTER_LATE = 8  # passages that a ranker reads after late interaction


def compare_pieces(query: Floats, candidates: Sequence[PassageMatch], index: Index) -> list[PassageMatch]:
    """Rank the candidates that have vectors of word pieces by MaxSim.

    Args:
        query: the vectors of the query's word pieces.
        candidates: the passages to rank.
        index: has the codes of the passages.
    """
    codes = index.codes([match.key for match in candidates])
    compared = [match for match in candidates if match.key in codes]
    scores = late.maxsim(query, [codes[match.key] for match in compared]).tolist()
    return _sorted(compared, scores)


def rank_with(
    ranker: Ranker, query: str, candidates: Sequence[PassageMatch], index: Index
) -> tuple[list[PassageMatch], dict[PassageKey, tuple[Sentence, ...]]]:
    """Rank candidates with a ranker; also return their best sentences, if the ranker scores sentences."""
    passages = index.passages([match.key for match in candidates])
    current = [match for match in candidates if is_current(match, passages)]
    scored = rank(ranker, query, [ranker_input(passages[match.key]) for match in current])
    sentences = {
        match.key: best_sentences(passages[match.key].entry.passage.sentences, scores)
        for match, scores in zip(current, scored.sentences or (), strict=False)
    }
    return _sorted(current, scored.passages), sentences


def ranker_input(stored: StoredPassage) -> inputs.Candidate:
    """Return a passage and its sentences as a ranker reads them."""
    text, passage = wording(stored.title, stored.entry), stored.entry.passage
    shift = len(text) - len(stored.entry.text) - passage.span.begin  # the title and headings precede the text
    spans = (Span(sentence.begin + shift, sentence.end + shift) for sentence in passage.sentences)
    return inputs.Candidate(text, tuple(spans))


def best_sentences(spans: Sequence[Span], scores: Sequence[float]) -> tuple[Sentence, ...]:
    """Return the sentences with the highest scores, best first."""
    scored = [Sentence(span, round(score, 4)) for span, score in zip(spans, scores, strict=True)]
    return tuple(sorted(scored, key=lambda sentence: (-sentence.score, sentence.span))[:BEST])


def _sorted(matches: Sequence[PassageMatch], scores: Sequence[float]) -> list[PassageMatch]:
    """Return matches with new scores, best first; equal scores keep their order."""
    scored = [match._replace(score=score) for match, score in zip(matches, scores, strict=True)]
    return sorted(scored, key=lambda match: -match.score)
