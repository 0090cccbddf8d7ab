"""`capr supervise`: what would training see of these documents?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from capr.annotate.mentions import Annotator, annotator
from capr.annotate.vocabulary import Vocabulary
from capr.cli import inputs
from capr.documents import CaprError
from capr.supervise.examples import KINDS, examples
from capr.supervise.labels import ENTITIES, Labeller, labelled
from capr.supervise.pool import Pool


def command(
    files: inputs.Files,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="PAIRS", help="The JSON Lines to write.")],
    seed: Annotated[int, typer.Option("--seed", help="The same seed draws the same examples.")] = 0,
    entities: Annotated[
        str | None,
        typer.Option("--entities", help="Of title, links, mentions; by the kind of document if not given."),
    ] = None,
    negated: Annotated[
        bool, typer.Option("--negated/--no-negated", help="Count what is said not to be there as an entity.")
    ] = False,
    negatives: Annotated[
        str, typer.Option("--negatives", help="Kinds of hard negatives, with commas between.")
    ] = ",".join(KINDS),
    false_negatives: Annotated[
        int, typer.Option("--false-negatives", min=0, help="Other passages with the same labels to list, at most.")
    ] = 100,
    words: Annotated[int, typer.Option("--words", min=1, help="Words in a passage, at most.")] = 250,
    tagger: Annotated[
        bool, typer.Option("--tagger/--no-tagger", help="Look also for entities that the vocabulary does not have.")
    ] = False,
    cues: inputs.Cues = True,
    without: inputs.Without = None,
    without_passages: inputs.WithoutPassages = None,
    aliases: inputs.Aliases = None,
    vocabulary: inputs.VocabularyTables = None,
    format: inputs.Format = None,
    column: inputs.Column = None,
    strict: inputs.Strict = False,
    replace: inputs.Replace = False,
) -> None:
    """Make training examples from documents: an entity, an aspect, the passage that is about both, and others.

    Entities are the title and the links of an article, and the mentions of a note; aspects are headings. There is one
    example for every passage that has both, each with up to three passages that do not answer: another section of the
    document, one with the same words, the same aspect of another entity.

    Example: capr supervise articles/ -o pairs.jsonl
    """
    chosen = _list("--entities", entities, ENTITIES) if entities else None
    kinds = _list("--negatives", negatives, KINDS)
    source = inputs.Documents(files, format, column, strict, replace, speed=20_000 if tagger else 500_000)
    finder = annotator(tagger, Vocabulary.load(*vocabulary or ()))
    held_out = inputs.names(without), inputs.texts(without_passages)
    labeller = Labeller(finder, chosen, negated, words, cues, inputs.aliases(aliases), *held_out)
    _may_write(output)
    part = output.with_name(output.name + ".part")
    with Pool(labelled(source.documents(), labeller)) as pool:
        with part.open("w", encoding="utf-8") as file:
            drawn = examples(pool, seed, negatives=kinds, false_negatives=false_negatives)
            for example in inputs.counting(drawn, len(pool), "examples"):
                file.write(json.dumps(example.as_json(), ensure_ascii=False) + "\n")
        part.replace(output)
        _summary(pool, labeller, finder, source.reading.documents, output)
    source.finish()


def _may_write(output: Path) -> None:
    """Only examples are overwritten: the output may be a document that somebody named by mistake."""
    if not output.parent.is_dir():
        raise CaprError(f"there is no folder {output.parent}. Fix: make it, or name another file with --output.")
    if output.exists():
        with output.open(encoding="utf-8", errors="replace") as file:
            if '"entity_id"' not in file.readline():
                raise CaprError(f"{output} is there already and holds no examples. Fix: name another file.")


def _list(option: str, given: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    for name in names:
        if name not in known:
            raise CaprError(f"{option} knows no {name!r}. Fix: use some of {', '.join(known)}.")
    return names


def _summary(pool: Pool, labeller: Labeller, finder: Annotator, documents: int, output: Path) -> None:
    console = inputs.terminal()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("entity", "passages", "aspect", "passages"):
        table.add_column(column, justify="right" if column == "passages" else "left", no_wrap=column == "passages")
    codes = finder.gazetteer.vocabulary
    top = zip(pool.most_common("entity", 10), pool.most_common("aspect", 10), strict=False)
    for (entity, count), (aspect, number) in top:
        concept = codes.by_code(entity)
        table.add_row(concept.name if concept else entity, f"{count:,}", aspect, f"{number:,}")
    if len(pool):
        console.print(table)
    skipped = sum(labeller.skipped.values())
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in labeller.skipped.most_common())
    found = f"{pool.count('entity'):,} entities, {inputs.counted(pool.count('aspect'), 'aspect')}"
    console.print(
        f"{inputs.counted(len(pool), 'example')} of {inputs.counted(documents, 'document')}, {found}: {output}"
    )
    console.print(f"{inputs.counted(skipped, 'passage')} skipped{f' ({reasons})' if reasons else ''}")
