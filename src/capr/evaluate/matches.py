"""Tell whether the first passage of each query matches the entity, the aspect, both or neither.

Reference: Arnold et al. (CDV), 2020, figures 5 to 7.
"""

from __future__ import annotations

from collections.abc import Mapping

from capr.evaluate.scorers import ranked
from capr.evaluate.task import Run, Task

MATCHES = ("both", "entity", "aspect", "neither")


def matches(task: Task, run: Run) -> dict[str, str]:
    """Return what the first passage matches, by query.

    A passage matches the entities and aspects of the queries that it answers. It also matches every entity of its
    document.
    """
    entities: dict[str, set[str]] = {}  # by passage and by document
    aspects: dict[str, set[str]] = {}
    for query in task.queries:
        for id in query.relevant:
            aspects.setdefault(id, set()).add(query.aspect)
            for key in (id, *task.spans.get(id, ())[:1]):
                entities.setdefault(key, set()).add(query.entity)
    matches_by_query = {}
    for query in task.queries:
        first_id = next(iter(ranked(run.get(query.id, {}), task.positions)), None)
        is_relevant = first_id in query.relevant
        keys = [] if first_id is None else [first_id, *task.spans.get(first_id, ())[:1]]
        entity = is_relevant or any(query.entity in entities.get(str(key), ()) for key in keys)
        aspect = is_relevant or (first_id is not None and query.aspect in aspects.get(first_id, ()))
        matches_by_query[query.id] = {(True, True): "both", (True, False): "entity", (False, True): "aspect"}.get(
            (entity, aspect), "neither"
        )
    return matches_by_query


def shares(matches_by_query: Mapping[str, str]) -> dict[str, float]:
    """Return the share of queries with each match."""
    total = max(1, len(matches_by_query))
    return {match: sum(value == match for value in matches_by_query.values()) / total for match in MATCHES}
