"""The reader of CoNLL files: one token per line with an IOB or IOBES tag in the last column.

A blank line ends a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from capr.documents.document import Annotation, Document, Span
from capr.documents.format import Format, Records
from capr.documents.problem import Problem
from capr.documents.source import HEAD_LENGTH, Source

TAG = re.compile(r"O|[BIES]-\S+")
COLUMNS = re.compile(r"[ \t]+")
DOCSTART = re.compile(r"-DOCSTART-|(?<!\S)(?:-X-|O)(?!\S)|\s+")


def read(source: Source) -> Records:
    """Yield one document per `-DOCSTART-`, with one sentence per line; or one per sentence in a file without them.

    The text consists of the tokens joined by spaces, because the format does not preserve the original text.
    """
    sentences: list[list[tuple[str, str]]] = [[]]
    has_docstarts = False
    docstart = ""
    number = 0
    for line in source.lines():
        columns = (
            [column for column in COLUMNS.split(line.strip("\r\n")) if column]
            if "\t" not in line
            else [column.strip(" ") for column in line.strip("\r\n").split("\t")]
        )
        if not line.strip():
            if sentences[-1]:
                sentences.append([])
            if has_docstarts:
                continue
        elif columns[0].startswith("-DOCSTART-"):
            if any(sentences):
                number += 1
                yield _document(source.document_id(number), sentences, docstart)
                sentences = [[]]
            has_docstarts, docstart = True, DOCSTART.sub("", line.strip())
            continue
        elif len(columns) < 2 or not columns[0] or not TAG.fullmatch(columns[-1]):
            fix = "write a token and its tag (O, B-type or I-type), with a tab or space between"
            yield Problem(f"{line.rstrip()[:60]!r} is not a token and an IOB tag", fix, line=source.line)
            continue
        else:
            sentences[-1].append((columns[0], columns[-1]))
            continue
        if any(sentences):
            number += 1
            yield _document(source.document_id(number), sentences, docstart)
            sentences = [[]]
    if any(sentences):
        yield _document(source.document_id(number + 1), sentences, docstart)


def _document(identifier: str, sentences: Sequence[Sequence[tuple[str, str]]], docstart: str) -> Document:
    """Return a document with the tokens as text and the entities as annotations.

    An `I-` tag that does not continue an entity begins one.
    """
    parts: list[str] = []
    entities: list[tuple[int, int, str]] = []
    position = 0
    for sentence in filter(None, sentences):
        open_type = None
        for token, tag in sentence:
            prefix, _, kind = tag.partition("-")
            if prefix in ("I", "E") and kind == open_type:
                entities[-1] = (entities[-1][0], position + len(token), kind)
            elif prefix != "O":
                entities.append((position, position + len(token), kind))
            open_type = kind if prefix in ("B", "I") else None
            parts += [token, " "]
            position += len(token) + 1
        parts[-1] = "\n"
    annotations = tuple(Annotation("mention", Span(begin, end), {"type": kind}) for begin, end, kind in entities)
    return Document(
        identifier, "".join(parts), metadata={"docstart": docstart} if docstart else {}, annotations=annotations
    )


def recognises(name: str, head: str) -> bool:
    """Check the name, or else look for three lines with as many columns each, tags in the last one, and an entity."""
    if name.endswith((".conll", ".iob", ".bio", ".iob2")):
        return True
    lines = [line.rstrip() for line in head.split("\n") if line.strip() and not line.startswith("-DOCSTART-")]
    lines = lines[:-1] if len(head) >= HEAD_LENGTH // 4 else lines  # the last line may be incomplete
    rows = [line.split("\t") if "\t" in line else line.split(" ") for line in lines[:200]]
    tags = [row[-1] for row in rows]
    return (
        len(rows) >= 3
        and len({len(row) for row in rows}) == 1
        and len(rows[0]) > 1
        and all(TAG.fullmatch(tag) for tag in tags)
        and any(tag[0] in "BIS" for tag in tags)
    )


FORMAT = Format("conll", "CoNLL IOB: tokens and entity tags", recognises, read)
