"""Masking: hides the spans that a `Deidentifier` finds in every reply of the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capr.documents import Document, NotFoundError
from capr.search import Library
from capr.search.conditions import THERE
from capr.serve.deidentify import HIDDEN, Deidentifier, mask, mask_metadata


class Masking:
    """Masks the texts of one reply.

    It masks whole documents and then cuts them, so that a name at the edge of a passage is hidden as well.

    Args:
        deidentifier: finds the spans to hide; None to send everything unmasked.
        library: the library of the documents.
    """

    def __init__(self, deidentifier: Deidentifier | None, library: Library) -> None:
        self._deidentifier, self._library = deidentifier, library
        self._documents: dict[str, tuple[Document, str]] = {}

    def __bool__(self) -> bool:
        return self._deidentifier is not None

    def text(self, document: Document) -> str:
        """Return the masked text of a document."""
        return self._masked_document(document.id, document)[1]

    def short_text(self, text: str, metadata: Mapping[str, Any]) -> str:
        """Return a masked title or heading."""
        return mask(text, self._deidentifier.find(text, metadata)) if self._deidentifier is not None else text

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return masked metadata."""
        return mask_metadata(metadata, self._deidentifier) if self._deidentifier is not None else dict(metadata)

    def results(self, results: dict[str, Any]) -> dict[str, Any]:
        """Mask the results of a search in place, and return them."""
        if self:
            results["hits"] = self._excerpts(results["hits"])
            results["notices"] = _without_values(results["notices"])
        return results

    def answers(self, results: dict[str, Any]) -> dict[str, Any]:
        """Mask the answers to a question in place, and return them."""
        if self:
            count = len(results["answers"])
            results["answers"] = self._excerpts(results["answers"])
            if len(results["answers"]) < count:
                best = max((answer["confidence"] for answer in results["answers"]), default=-1.0)
                results["answered"] = results["answered"] and best >= results["threshold"]
                results["found"] = results["answered"]
            results["notices"] = _without_values(results["notices"])
        return results

    def excerpt(self, excerpt: dict[str, Any]) -> dict[str, Any]:
        """Mask a hit, a passage, an answer or another location of an answer in place, and return it.

        Raises:
            NotFoundError: the document has been removed.
        """
        if not self:
            return excerpt
        document, text = self._masked_document(excerpt["document"])
        metadata = document.metadata
        excerpt["text"] = text[excerpt["begin"] : excerpt["end"]]
        if "title" in excerpt:
            excerpt["title"] = self.short_text(document.title, metadata)
        if "metadata" in excerpt:
            excerpt["metadata"] = self.metadata(metadata)
        if "headings" in excerpt:
            excerpt["headings"] = [self.short_text(heading, metadata) for heading in excerpt["headings"]]
        if "aspect" in excerpt:
            excerpt["aspect"] = self.short_text(excerpt["aspect"], metadata)
        for name in ("sentences", "neighbours"):
            for part in excerpt.get(name, ()):
                part["text"] = text[part["begin"] : part["end"]]
        for name in ("sentence", "passage", "paragraph"):
            if name in excerpt:
                excerpt[name]["text"] = text[excerpt[name]["begin"] : excerpt[name]["end"]]
        if "highlights" in excerpt:
            excerpt["highlights"] = [span for span in excerpt["highlights"] if HIDDEN not in text[span[0] : span[1]]]
        if "mentions" in excerpt:
            excerpt["mentions"] = self.mentions(excerpt["mentions"], text)
        _mask_cues(excerpt.get("context", {}), text)
        for name in ("others", "places"):
            excerpt.update({name: self._excerpts(excerpt[name])} if name in excerpt else {})
        return excerpt

    def _excerpts(self, excerpts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the masked excerpts, without those whose documents were removed after the search."""
        masked = []
        for excerpt in excerpts:
            try:
                masked.append(self.excerpt(excerpt))
            except NotFoundError:
                if others := self._excerpts(excerpt.get("others", ())):  # the next best hit represents the group
                    masked.append({**others[0], "group": excerpt["group"], "others": others[1:]})
        return masked

    def mentions(self, mentions: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
        """Return the mentions that are not hidden: the concept of a hidden one would reveal it."""
        visible = [mention for mention in mentions if HIDDEN not in text[mention["begin"] : mention["end"]]]
        for mention in visible:
            _mask_cues(mention["cues"], text)
        return visible

    def _masked_document(self, id: str, document: Document | None = None) -> tuple[Document, str]:
        """Return a document and its masked text."""
        if id not in self._documents:
            document = document or self._library.document(id)
            text = document.text
            if self._deidentifier is not None:
                text = mask(text, list(self._deidentifier.find(text, document.metadata)))
            self._documents[id] = document, text
        return self._documents[id]


def _mask_cues(cues: Mapping[str, dict[str, Any]], text: str) -> None:
    """Replace the words of cues by those of the masked text."""
    for cue in cues.values():
        if cue["begin"] is not None:
            cue["text"] = text[cue["begin"] : cue["end"]]


def _without_values(notices: Iterable[str]) -> list[str]:
    """Return the notices without the values of a field, which may be names."""
    return [notice.partition(THERE)[0] for notice in notices]
