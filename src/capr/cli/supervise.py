"""`capr supervise`: make training examples from documents."""

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
from capr.cli.options import expand_options
from capr.documents import CaprError
from capr.segment.cutting import MAX_WORDS
from capr.supervise.examples import KINDS, examples
from capr.supervise.labels import ENTITIES, Labeller, labelled
from capr.supervise.pool import Pool


@expand_options
def command(
    sources: inputs.DocumentOptions,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="PAIRS", help="The JSON Lines to write.")],
    seed: Annotated[int, typer.Option("--seed", help="The seed of the random examples.")] = 0,
    entities: Annotated[
        str | None,
        typer.Option("--entities", help="Any of title, links, mentions. Default: depends on the document."),
    ] = None,
    negated: Annotated[
        bool, typer.Option("--negated/--no-negated", help="Also use negated mentions as entities.")
    ] = False,
    negatives: Annotated[
        str, typer.Option("--negatives", help="Kinds of hard negatives, separated by commas.")
    ] = ",".join(KINDS),
    false_negatives: Annotated[
        int,
        typer.Option("--false-negatives", min=0, help="Maximum number of other passages with the same labels to list."),
    ] = 100,
    words: Annotated[int, typer.Option("--words", min=1, help="Maximum number of words in a passage.")] = MAX_WORDS,
    tagger: Annotated[
        bool, typer.Option("--tagger/--no-tagger", help="Also find entities that the vocabulary does not have.")
    ] = False,
    aspects_from_text: inputs.AspectsFromText = True,
    without: inputs.Without = None,
    without_passages: inputs.WithoutPassages = None,
    aliases: inputs.Aliases = None,
    vocabulary: inputs.VocabularyTables = None,
) -> None:
    """Make training examples: an entity, an aspect, a positive passage that is about both, and negatives.

    Entities are the title and the links of an article, and the mentions of a note. Aspects are headings. Every passage
    with both gives one example with up to three hard negatives: another section of the document, a passage with the
    same words, and the same aspect of another entity.

    Example: capr supervise articles/ -o pairs.jsonl
    """
    entity_kinds = _parse_list("--entities", entities, ENTITIES) if entities else None
    negative_kinds = _parse_list("--negatives", negatives, KINDS)
    source = sources.read(20_000 if tagger else 500_000)
    finder = annotator(tagger, Vocabulary.load(*vocabulary or ()))
    held_out = inputs.read_names(without), inputs.read_texts(without_passages)
    labeller = Labeller(
        finder, entity_kinds, negated, words, aspects_from_text, inputs.read_aliases(aliases), *held_out
    )
    _check_output(output)
    partial_file = output.with_name(output.name + ".part")
    with Pool(labelled(source.documents(), labeller)) as pool:
        with partial_file.open("w", encoding="utf-8") as file:
            example_stream = examples(pool, seed, negatives=negative_kinds, false_negatives=false_negatives)
            for example in inputs.with_progress_bar(example_stream, len(pool), "examples"):
                file.write(json.dumps(example.as_json(), ensure_ascii=False) + "\n")
        partial_file.replace(output)
        _print_summary(pool, labeller, finder, source.reading.documents, output)
    source.finish()


def _check_output(output: Path) -> None:
    """Raise CaprError unless the output is new or holds examples, so that no other file is overwritten."""
    if not output.parent.is_dir():
        raise CaprError(f"there is no folder {output.parent}. Fix: create it, or name another file with --output.")
    if output.exists():
        with output.open(encoding="utf-8", errors="replace") as file:
            if '"entity_id"' not in file.readline():
                raise CaprError(f"{output} exists already and holds no examples. Fix: name another file.")


def _parse_list(option: str, text: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in choices:
            raise CaprError(f"{option} does not accept {name!r}. Fix: use some of {', '.join(choices)}.")
    return names


def _print_summary(pool: Pool, labeller: Labeller, finder: Annotator, documents: int, output: Path) -> None:
    console = inputs.terminal()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("entity", "passages", "aspect", "passages"):
        table.add_column(column, justify="right" if column == "passages" else "left", no_wrap=column == "passages")
    vocabulary = finder.gazetteer.vocabulary
    top = zip(pool.most_common("entity", 10), pool.most_common("aspect", 10), strict=False)
    for (entity, entity_count), (aspect, aspect_count) in top:
        concept = vocabulary.by_code(entity)
        table.add_row(concept.name if concept else entity, f"{entity_count:,}", aspect, f"{aspect_count:,}")
    if len(pool):
        console.print(table)
    skipped = sum(labeller.skipped.values())
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in labeller.skipped.most_common())
    labels = f"{pool.count('entity'):,} entities, {inputs.quantity(pool.count('aspect'), 'aspect')}"
    console.print(
        f"{inputs.quantity(len(pool), 'example')} of {inputs.quantity(documents, 'document')}, {labels}: {output}"
    )
    console.print(f"{inputs.quantity(skipped, 'passage')} skipped{f' ({reasons})' if reasons else ''}")
