"""Scoring: score every sentence of a document for the entity and the aspect of a query."""

from __future__ import annotations

from collections.abc import Sequence

from capr.annotate import Query
from capr.documents import CaprError, Document
from capr.index import SENTENCES, FilteredIndex, StoredPassage
from capr.search.consistency import check_model
from capr.search.contents import document
from capr.search.curve import Curve, headings_of, score_sentences
from capr.search.query_pair import pair_of
from capr.search.resources import Resources
from capr.search.sentence_scores import by_words
from capr.text.digest import digest

SCORERS = ("discourse", "encoder", "words", "best")
FEW_SENTENCES = 400  # maximum sentences that an encoder reads while a user waits


def scores(resources: Resources, query: str | Query, id: str, by: str) -> Curve:
    """Return the scores of the sentences of a document; see `Library.scores`."""
    if by not in SCORERS:
        raise CaprError(f"sentences cannot be scored by {by!r}. Fix: use {', '.join(SCORERS)}.")
    index = resources.index
    stored_document = document(index, id)
    cleaned, parsed = resources.parse(query)
    entity, aspect = pair_of(cleaned, parsed)
    passages = index.passages_in(stored_document.id)
    if by == "discourse" or (by == "best" and has_discourse(resources)):
        return _by_discourse(resources, stored_document, entity, aspect, passages)
    parts = [stored.entry.passage for stored in passages]
    sentences = [(span, passage.heading or "") for passage in parts for span in passage.sentences]
    headings = headings_of(parts)
    mode = {"words": "lexical", "encoder": "dense"}.get(by, "hybrid")
    encoder = resources.models.encoder_for_search(index, mode, [])
    if encoder is not None and (by == "encoder" or len(sentences) <= FEW_SENTENCES):
        key = (
            digest(stored_document),
            tuple(sentences),
            encoder.identity.digest,
            index.filters if isinstance(index, FilteredIndex) else None,
        )
        query_parts = (entity, aspect, parsed.text)
        sentence_scores = resources.sentence_scorer.by_encoder(stored_document, sentences, encoder, query_parts, key)
        return Curve(stored_document, entity, aspect, sentence_scores, headings, by="encoder")
    sentence_scores = by_words(stored_document, sentences, index, (entity, aspect, parsed.text))
    return Curve(stored_document, entity, aspect, sentence_scores, headings, by="words")


def has_discourse(resources: Resources) -> bool:
    """Return whether sentences have vectors of a discourse model that is available."""
    if resources.index.encoder(SENTENCES) is None:
        return False
    try:
        return resources.models.discourse(resources.index) is not None
    except CaprError:
        return False


def _by_discourse(
    resources: Resources, document: Document, entity: str, aspect: str, passages: Sequence[StoredPassage]
) -> Curve:
    discourse = resources.models.discourse_for_search(resources.index)
    vectors = resources.index.span_vectors([stored.key for stored in passages])
    if len(vectors) < len(passages):
        fact = f"the sentences of {document.id!r} have no vectors yet"
        raise CaprError(f"{fact}. Fix: capr encode {resources.folder}.")
    check_model(resources.index, SENTENCES, discourse)
    sentence_scores = score_sentences(list(vectors.values()), discourse.query(entity, aspect))
    headings = headings_of([stored.entry.passage for stored in passages])
    return Curve(document, entity, aspect, sentence_scores, headings, discourse.threshold)
