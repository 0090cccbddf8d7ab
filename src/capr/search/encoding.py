"""Encoding: make the vectors of passages and sentences that are in a library."""

from __future__ import annotations

import os
from collections.abc import Callable

from capr.documents import CaprError
from capr.index import SENTENCES
from capr.index.encode import encode_passages, encode_sentences
from capr.runtime.discourse import Discourse
from capr.runtime.encoder import Encoder
from capr.search import batches
from capr.search.models import NONE
from capr.search.resources import Resources

Progress = Callable[[int, int], None]  # called with the number of passages done, and of all passages


def encode(
    resources: Resources,
    encoder: Encoder | str | os.PathLike[str] | None = None,
    discourse: Discourse | str | os.PathLike[str] | None = None,
    on_commit: Progress | None = None,
) -> int:
    """Make the vectors that passages and sentences lack, and return the number of passages; see `Library.encode`.

    Args:
        resources: the resources of the library, with the models that the user named.
        encoder: the encoder that the user named, if any.
        discourse: the discourse model that the user named, if any.
        on_commit: called with the number of passages done, and of all passages.
    """
    index, models = resources.index, resources.models
    sentences_only = encoder is None and discourse is not None
    if encoder is None and index.encoder(SENTENCES) is None and not sentences_only:
        models.use_shipped_encoder(index, only_if_empty=False)
    passage_model = None if sentences_only else models.encoder(index)
    passages_only = encoder is not None and encoder != NONE and discourse is None
    sentence_model = None if passages_only else models.discourse(index)
    if passage_model is None and sentence_model is None:
        if sentences_only:
            fix = f"omit --discourse none, or capr encode {resources.folder} --discourse FOLDER"
            raise CaprError(f'there is nothing to encode, since the discourse model is "none". Fix: {fix}.')
        fact = "there is no discourse model, and there is no encoder to encode with"
        raise CaprError(f"{fact}. Fix: capr encode {resources.folder} --encoder FOLDER.")
    done = 0
    with index.writing() as writer:
        if passage_model is not None:
            done += encode_passages(index, writer, passage_model, batches.ENCODED, on_commit)
        if sentence_model is not None:
            done += encode_sentences(index, writer, sentence_model, batches.ENCODED, on_commit)
    return done
