"""What is right about the passage that a run puts first: the entity, the aspect, both or neither.

Reference: Arnold et al. (CDV), 2020, figures 5 to 7.
"""

from __future__ import annotations

from collections.abc import Mapping

from capr.evaluate.scorers import Run, ranked
from capr.evaluate.task import Task

MATCHES = ("both", "entity", "aspect", "neither")


def matches(task: Task, run: Run) -> dict[str, str]:
    """Of each query, what the first passage matches.

    A passage is on the entities and aspects for which it answers; on an entity also if its document is.
    """
    entities: dict[str, set[str]] = {}  # by passage, and by document
    aspects: dict[str, set[str]] = {}
    for asked in task.asked:
        for id in asked.relevant:
            aspects.setdefault(id, set()).add(asked.aspect)
            for place in (id, *task.spans.get(id, ())[:1]):
                entities.setdefault(place, set()).add(asked.entity)
    found = {}
    for asked in task.asked:
        first = next(iter(ranked(run.get(asked.id, {}), task.places)), None)
        answers = first in asked.relevant
        places = [] if first is None else [first, *task.spans.get(first, ())[:1]]
        entity = answers or any(asked.entity in entities.get(str(place), ()) for place in places)
        aspect = answers or (first is not None and asked.aspect in aspects.get(first, ()))
        found[asked.id] = {(True, True): "both", (True, False): "entity", (False, True): "aspect"}.get(
            (entity, aspect), "neither"
        )
    return found


def shares(found: Mapping[str, str]) -> dict[str, float]:
    """How often each is the case."""
    total = max(1, len(found))
    return {match: sum(value == match for value in found.values()) / total for match in MATCHES}
