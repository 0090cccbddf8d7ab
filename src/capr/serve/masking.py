"""Masking: takes what a `Deidentifier` finds out of whatever the server sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capr.documents import Document, NotThereError
from capr.search import Library
from capr.search.conditions import THERE
from capr.serve.deidentify import HIDDEN, Deidentifier, masked, masked_metadata


class Masking:
    """The texts of one reply. Each document is read whole, so that a name is hidden wherever it is cut.

    Args:
        by: finds what to hide; None for nothing, and then everything is sent as it is.
        library: that the documents are in.
    """

    def __init__(self, by: Deidentifier | None, library: Library) -> None:
        self._by, self._library = by, library
        self._known: dict[str, tuple[Document, str]] = {}

    def __bool__(self) -> bool:
        return self._by is not None

    def text(self, document: Document) -> str:
        """The text of a document, masked."""
        return self._masked(document.id, document)[1]

    def short(self, text: str, metadata: Mapping[str, Any]) -> str:
        """A title or a heading, masked."""
        return masked(text, self._by.find(text, metadata)) if self._by is not None else text

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Metadata, masked."""
        return masked_metadata(metadata, self._by) if self._by is not None else dict(metadata)

    def results(self, found: dict[str, Any]) -> dict[str, Any]:
        """What a search gives."""
        if self:
            found["hits"] = self._pieces(found["hits"])
            found["notices"] = _without_values(found["notices"])
        return found

    def answers(self, found: dict[str, Any]) -> dict[str, Any]:
        """What asking gives."""
        if self:
            count = len(found["answers"])
            found["answers"] = self._pieces(found["answers"])
            if len(found["answers"]) < count:
                best = max((answer["confidence"] for answer in found["answers"]), default=-1.0)
                found["found"] = found["found"] and best >= found["threshold"]
            found["notices"] = _without_values(found["notices"])
        return found

    def piece(self, found: dict[str, Any]) -> dict[str, Any]:
        """A hit, a passage, an answer, or a place of one: all that lies in its document, and that tells of it.

        Raises:
            NotThereError: its document is not there any more.
        """
        if not self:
            return found
        document, text = self._masked(found["document"])
        metadata = document.metadata
        found["text"] = text[found["begin"] : found["end"]]
        if "title" in found:
            found["title"] = self.short(document.title, metadata)
        if "metadata" in found:
            found["metadata"] = self.metadata(metadata)
        if "headings" in found:
            found["headings"] = [self.short(heading, metadata) for heading in found["headings"]]
        if "aspect" in found:
            found["aspect"] = self.short(found["aspect"], metadata)
        for name in ("sentences", "neighbours"):
            for one in found.get(name, ()):
                one["text"] = text[one["begin"] : one["end"]]
        for name in ("sentence", "paragraph"):
            if name in found:
                found[name]["text"] = text[found[name]["begin"] : found[name]["end"]]
        if "highlights" in found:
            found["highlights"] = [span for span in found["highlights"] if HIDDEN not in text[span[0] : span[1]]]
        if "mentions" in found:
            found["mentions"] = self.mentions(found["mentions"], text)
        _mask_cues(found.get("context", {}), text)
        for name in ("others", "places"):
            found.update({name: self._pieces(found[name])} if name in found else {})
        return found

    def _pieces(self, found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those whose document is still there: it may have been removed since they were found."""
        kept = []
        for one in found:
            try:
                kept.append(self.piece(one))
            except NotThereError:
                if others := self._pieces(one.get("others", ())):  # the next best stands for the group
                    kept.append({**others[0], "group": one["group"], "others": others[1:]})
        return kept

    def mentions(self, mentions: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
        """Those that are not hidden: what a name means would tell it."""
        shown = [one for one in mentions if HIDDEN not in text[one["begin"] : one["end"]]]
        for one in shown:
            _mask_cues(one["cues"], text)
        return shown

    def _masked(self, id: str, document: Document | None = None) -> tuple[Document, str]:
        if id not in self._known:
            whole = document or self._library.document(id)
            text = whole.text
            if self._by is not None:
                text = masked(text, list(self._by.find(text, whole.metadata)))
            self._known[id] = whole, text
        return self._known[id]


def _mask_cues(cues: Mapping[str, dict[str, Any]], text: str) -> None:
    """Takes the words of cues from a text that is masked."""
    for cue in cues.values():
        if cue["begin"] is not None:
            cue["text"] = text[cue["begin"] : cue["end"]]


def _without_values(notices: Iterable[str]) -> list[str]:
    """Notices that do not tell which values a field has: those may be names."""
    return [notice.partition(THERE)[0] for notice in notices]
