"""Finding: interpret a query, and return the passages that answer it."""

from __future__ import annotations

from capr.annotate import Query
from capr.documents import CaprError
from capr.index import PASSAGES, SENTENCES
from capr.search.conditions import (
    about_entities,
    ineffective_exclusion_notices,
    unknown_value_notices,
    unmatched_filter_notices,
)
from capr.search.hit import Results
from capr.search.passages import PassageSearch, SearchOptions
from capr.search.query_pair import pair_of
from capr.search.resources import GivenFilters, Resources
from capr.search.unknown_names import misspelt_fields, searched_as_words

WORD_MODES = ("lexical", "hybrid")


def find(
    resources: Resources,
    query: str | Query,
    options: SearchOptions,
    filters: GivenFilters = None,
    rerank: bool | None = None,
) -> Results:
    """Find passages; see `Library.search`."""
    index, models = resources.index, resources.models
    if rerank and models.ranker is None:
        raise CaprError("no ranker is available. Fix: name a ranker folder, or search without re-ranking.")
    cleaned, parsed = resources.parse(query)
    discourse = models.discourse_for_search(index) if options.mode == "cdv" else None
    if discourse is not None:
        parsed.pair = pair_of(cleaned, parsed)
    all_filters = about_entities(resources.filters(filters) & resources.filters(parsed.filters, check=False), parsed)
    notices = [*parsed.notices, *index.notices(SENTENCES if discourse else PASSAGES)]
    encoder = models.encoder_for_search(index, options.mode, notices)
    is_reranked = models.reranks(options.mode) if rerank is None else rerank
    ranker = models.ranker if is_reranked else None
    search = PassageSearch(index, parsed, all_filters, encoder, ranker, options, discourse)
    hits, mode = search.hits()
    notices += search.notices
    if not parsed.clauses:
        notices.append("the query has no words to look for")
    if mode in WORD_MODES:
        notices += searched_as_words(parsed, index)
    notices += misspelt_fields(parsed)
    notices += ineffective_exclusion_notices(all_filters, index)
    notices += unknown_value_notices(all_filters, index)
    if not hits:
        notices += unmatched_filter_notices(all_filters, index)
    return Results(tuple(hits), mode, parsed.expanded, tuple(notices))
