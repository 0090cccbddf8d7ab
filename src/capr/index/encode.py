"""Encode the passages and sentences of a library in batches, so that an interrupted run can continue."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from capr.index.prepare import encode_texts, sentences_by_passage, set_encoder, spaces_of, wording
from capr.index.protocol import Index, Writer
from capr.index.records import PassageKey, StoredPassage
from capr.index.spaces import SENTENCES
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder

OnCommit = Callable[[int, int], None] | None


def encode_passages(index: Index, writer: Writer, model: Encoder, batch: int, on_commit: OnCommit) -> int:
    """Encode every passage that has no vector of this model; return the number of encoded passages.

    Args:
        index: the index to read.
        writer: its writer.
        model: the encoder.
        batch: the number of passages in one commit.
        on_commit: called after each commit with the number of passages encoded so far and the total.
    """
    set_encoder(writer, model)
    writer.commit()
    stats = index.stats()
    spaces = spaces_of(model)
    total = stats.passages - min(stats.of(space).passages for space in spaces)
    done = 0
    for number, space in enumerate(spaces):  # a repaired library may lack vectors in one space only
        last: PassageKey | None = None
        while missing := index.without_vectors(batch, last, space):
            last = missing[-1].key
            vectors = encode_texts([wording(stored.title, stored.entry) for stored in missing], model)
            for filled in spaces[number:]:
                keys = (stored.key for stored in missing)
                writer.set_vectors(dict(zip(keys, vectors[filled], strict=True)), filled)
            writer.commit()
            done += len(missing)
            if on_commit:
                on_commit(done, max(done, total))
    return done


def encode_sentences(index: Index, writer: Writer, model: Discourse, batch: int, on_commit: OnCommit) -> int:
    """Encode the sentences of every passage that has no sentence vectors of this model; return the number of passages.

    The model reads whole documents, so a commit may have more than `batch` passages. For the arguments see
    `encode_passages`.
    """
    writer.set_encoder(model.identity, SENTENCES)
    writer.commit()
    stats = index.stats()
    done = 0
    last: PassageKey | None = None
    while missing := index.without_vectors(batch, last, SENTENCES):
        for document in filter(None, map(index.document, _documents(missing))):
            passages = index.passages_in(document.id)
            last = passages[-1].key
            vectors = sentences_by_passage(document, [stored.entry.passage.span for stored in passages], model)
            first = next(stored for stored in missing if stored.key.document == document.id)
            keys = {first.key, *(s.key for s in index.without_vectors(len(passages), first.key, SENTENCES))}
            pairs = zip(passages, vectors, strict=True)
            new = {stored.key: sentences for stored, sentences in pairs if stored.key in keys}
            writer.set_vectors(new, SENTENCES)
            done += len(new)
        writer.commit()
        if on_commit:
            on_commit(done, stats.passages - stats.passages_with_sentences)
    return done


def _documents(passages: Sequence[StoredPassage]) -> list[str]:
    """Return the distinct ids of the passages' documents."""
    return list(dict.fromkeys(stored.entry.passage.document for stored in passages))
