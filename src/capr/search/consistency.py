"""Checks that results read at different times belong together, while another process may change the library."""

from __future__ import annotations

from collections.abc import Mapping

from capr.index import Index, OtherModelError, PassageKey, PassageMatch, Space, StoredPassage
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder


def check_model(index: Index, space: Space, model: Encoder | Discourse | None) -> None:
    """Raise `OtherModelError` if vectors that were just read may come from another model.

    Another process may replace all vectors at any time.
    """
    identity = index.encoder(space)
    if model is not None and identity is not None and identity.digest != model.identity.digest:
        raise OtherModelError(f"{identity.name} ({identity.digest[:8]})")


def is_current(match: PassageMatch, passages: Mapping[PassageKey, StoredPassage]) -> bool:
    """Return whether the document of a match was neither removed nor replaced since the ranking."""
    return match.key in passages and passages[match.key].order == match.order
