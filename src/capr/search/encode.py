"""Gives vectors to what is in a library already, some at a time, so that it can be interrupted and gone on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from capr.index import Discourse, Encoder, Grain, Index, Stored, Writer
from capr.search.prepare import sentences_by_passage, wording

Told = Callable[[int, int], None] | None


def encode_passages(index: Index, writer: Writer, model: Encoder, batch: int, on_commit: Told) -> int:
    """Gives a vector to every passage that has none of this model; gives to how many.

    `batch` passages are kept at once. `on_commit` is called with the passages done so far and in all.
    """
    writer.set_encoder(model.identity)
    writer.commit()
    stats = index.stats()
    done = last = 0
    while some := index.without_vectors(batch, last):
        last = some[-1].number
        vectors = model.passages([wording(stored.title, stored.entry) for stored in some])
        writer.set_vectors({stored.number: vector for stored, vector in zip(some, vectors, strict=True)})
        writer.commit()
        done += len(some)
        if on_commit:
            on_commit(done, stats.passages - stats.vectors)
    return done


def encode_sentences(index: Index, writer: Writer, model: Discourse, batch: int, on_commit: Told) -> int:
    """The same for the sentences of passages, whole documents at a time, since the model reads documents."""
    writer.set_encoder(model.identity, Grain.SENTENCES)
    writer.commit()
    stats = index.stats()
    done = last = 0
    while some := index.without_vectors(batch, last, Grain.SENTENCES):
        for document in filter(None, map(index.document, _documents(some))):
            passages = index.passages_in(document.id)
            last = passages[-1].number
            found = sentences_by_passage(document, [stored.entry.passage.span for stored in passages], model)
            lacking = index.without_vectors(len(passages), passages[0].number - 1, Grain.SENTENCES)
            own = {stored.number: one for stored, one in zip(passages, found, strict=True)}
            new = {stored.number: own[stored.number] for stored in lacking if stored.number in own}
            writer.set_sentences(new)
            done += len(new)
        writer.commit()
        if on_commit:
            on_commit(done, stats.passages - stats.passages_with_sentences)
    return done


def _documents(passages: Sequence[Stored]) -> list[str]:
    """The ids of their documents, each once."""
    return list(dict.fromkeys(stored.entry.passage.document for stored in passages))
