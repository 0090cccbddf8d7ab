"""How the reference engine compares words and values of fields, and evaluates filters."""

from __future__ import annotations

import re
import unicodedata

from capr.documents import Document
from capr.index import Filters, PassageEntry
from capr.index.filters import ASPECT, ID


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and the plural s."""
    folded = unicodedata.normalize("NFKD", text.lower())
    words = re.findall(r"[^\W_]+", "".join(c for c in folded if not unicodedata.combining(c)))
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words]


def values_of(document: Document, name: str) -> set[str]:
    """Return the values of a document's field in the form that is compared."""
    if name == ID:
        return {document.id}
    plain = name[1:] if name.startswith("##") else name  # a second # distinguishes it from the fields of capr
    values = [value for key, value in document.metadata.items() if key.strip().casefold() == plain]
    items = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
    texts = {str(item).strip() for item in items if item is not None}
    return {text if name == "patient" else text.casefold() for text in texts if text}


def day_of(document: Document) -> str:
    """Return the day of a document's date, or an empty text."""
    match = re.match(r"\d{4}(-\d\d){0,2}", str(document.metadata.get("date", "")))
    return (match[0] + "-01-01")[:10] if match else ""


def passes(filters: Filters, document: Document, entry: PassageEntry | None = None) -> bool:
    """Whether a passage matches the filters; without a passage, whether the document matches them."""
    for condition in filters.conditions:
        of_passage = condition.name == ASPECT
        if of_passage and entry is None:
            continue
        having = {entry.aspect} if of_passage and entry else values_of(document, condition.name)
        if bool(having & condition.values) == condition.exclude:
            return False
    day = day_of(document)
    if not day and (filters.since or filters.until or filters.days):
        return False
    if (filters.since and day < filters.since) or (filters.until and day > filters.until):
        return False
    if day and any(first <= day <= last for first, last in filters.not_days):
        return False
    if filters.days and not any(first <= day <= last for first, last in filters.days):
        return False
    if not filters.entities or entry is None:
        return True
    return any(
        mention.concept is not None
        and mention.concept.code in filters.entities
        and not filters.without & mention.context.keys()
        for mention in entry.mentions
    )
