"""`capr train cdv`: teach a network what every sentence of a long document is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import capr
from capr.cli import inputs
from capr.cli.options import spread
from capr.cli.train_retrieval import Device, Given, Patience, Seed, not_beside, one_of
from capr.documents import CaprError

if TYPE_CHECKING:
    from capr.index.subwords import Subwords
    from capr.supervise.labels import Labeller
    from capr.train.cdv_recipe import Recipe
    from capr.train.discourses import Discourses
    from capr.train.loop import Report

KEPT = "training.discourses.gz"
RECIPES = ("ours", "paper", "code")
OVER = ("blstm", "transformer")
EMBEDDINGS = ("dense", "ends")


@spread
def command(
    given: Given,
    recipe: Annotated[
        str, typer.Option("--recipe", help="ours, paper (as published) or code (the sizes and loss of its code).")
    ] = "ours",
    over: Annotated[str, typer.Option("--over", help="What reads the sentences: blstm or transformer.")] = "blstm",
    base: Annotated[
        str, typer.Option("--base", metavar="MODEL", help="An encoder to read sentences with, instead of words.")
    ] = "",
    tune: Annotated[int, typer.Option("--tune", min=0, help="Epochs of a second stage that trains the base, too.")] = 0,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="FILE", help="Word vectors: GloVe's text, or words.npz.")
    ] = None,
    space: Annotated[
        str | None, typer.Option("--space", help="Where queries lie: names, codes (the paper's) or encoder.")
    ] = None,
    queries: Annotated[
        str, typer.Option("--query-encoder", metavar="FOLDER", help="Of --space encoder, if not the base.")
    ] = "",
    descriptions: Annotated[
        list[str] | None,
        typer.Option("--descriptions", metavar="FILE", help="Documents that describe entities, for --space codes."),
    ] = None,
    embedding: Annotated[
        str | None, typer.Option("--embedding", help="Of --space codes: dense (a layer) or ends (mean of end states).")
    ] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", help="softmax, smoothed, distance or element; if not given, the recipe's.")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Let frequent aspects, and entities only mentioned, count less.")
    ] = False,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="12 if not given; 50 of paper and code.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Documents in a step: 8 if not given; 16 of paper and code.")
    ] = None,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 1e-3,
    patience: Patience = 3,
    seed: Seed = 1,
    device: Device = None,
) -> None:
    """Train a discourse model (CDV) from documents: every sentence gets a vector that knows the whole document.

    Entities are titles, links and mentions, aspects are headings, as for capr train bi. A twentieth of the documents is
    kept to validate on. Interrupted, the same command with --resume goes on. Needs the extra `train`.

    Example: capr train cdv articles.jsonl -o cdv
    """
    try:
        from capr.train.cdv import Sources, check, train
        from capr.train.loop import Schedule
    except ImportError as error:
        fix = "pip install 'capr[train]'"
        raise CaprError(f"training needs {error.name}, which is not installed. Fix: {fix}.") from error
    chosen = replace(_recipe(recipe, over, space, loss), balanced=balanced)
    one_of("--part", given.part, ("all", "train"))
    if device is not None:
        one_of("--device", device, ("cuda", "cpu"))
    if tune and not base:
        raise CaprError("--tune trains the base, and there is none. Fix: name one with --base.")
    if descriptions and chosen.space != "codes":
        fact = f"--descriptions are for --space codes, and the space is {chosen.space}"
        raise CaprError(f"{fact}. Fix: add --space codes, or leave them out.")
    if embedding is not None:
        one_of("--embedding", embedding, EMBEDDINGS)
        if chosen.space != "codes":
            fact = f"--embedding is for --space codes, and the space is {chosen.space}"
            raise CaprError(f"{fact}. Fix: add --space codes, or leave it out.")
        chosen = replace(chosen, dense=embedding == "dense")
    if queries and chosen.space != "encoder":
        fact = f"--query-encoder is for --space encoder, and the space is {chosen.space}"
        raise CaprError(f"{fact}. Fix: add --space encoder, or leave it out.")
    if vectors and base and chosen.space == "encoder":
        fact = "--vectors are of words, and with --base and --space encoder nothing reads words"
        raise CaprError(f"{fact}. Fix: leave them out, or use --space names.")
    times, size = (12, 8) if recipe == "ours" else (50, 16)
    schedule = Schedule(epochs or times, batch or size, learning_rate, patience=patience, seed=seed)
    if device is not None:
        schedule = replace(schedule, device=device)
    tuning = replace(schedule, epochs=tune, learning_rate=2e-5, batch=min(schedule.batch, 4)) if tune else None
    sources = Sources(base=base, queries=queries, tuning=tuning)
    check(chosen, sources, schedule.device)
    words = _vectors(vectors)  # before the documents, which may take an hour
    discourses, described = _documents(given, descriptions or [])
    sources = replace(sources, vectors=words, descriptions=described)
    with inputs.steps() as told:

        def progress(stage: str, report: Report) -> None:
            told(stage, report.step, report.steps, report.loss)
            if report.scores:
                shown = ", ".join(f"{name} {100 * value:.1f}" for name, value in report.scores.items())
                print(f"{stage}, step {report.step:,} of {report.steps:,}: validation {shown}", file=sys.stderr)

        named = replace(chosen, licence=given.licence)
        scores = train(discourses, named, schedule, given.output, sources, given.resume, progress)
    print(f"{given.output}: {', '.join(f'{name} {100 * value:.1f} %' for name, value in scores.items())}")


def _recipe(name: str, over: str, space: str | None, loss: str | None) -> Recipe:
    from capr.models.cdv import CODE
    from capr.train.cdv_recipe import LOSSES, OURS, PAPER, SPACES

    one_of("--recipe", name, RECIPES)
    one_of("--over", over, OVER)
    recipe = OURS if name == "ours" else PAPER
    if name == "code":
        recipe = replace(recipe, sizes=CODE, loss="element", means=("unit",))
    if space is not None:
        one_of("--space", space, SPACES)
        recipe = replace(recipe, space=space)
    if loss is not None:
        one_of("--loss", loss, LOSSES)
        recipe = replace(recipe, loss=loss)
    return replace(recipe, sizes=replace(recipe.sizes, over=over))


def _vectors(path: Path | None) -> Subwords | None:
    from capr.index.subwords import Subwords, read_glove

    if path is None:
        return None
    if not path.is_file():
        fact = f"{path} is a folder, and no file of word vectors" if path.is_dir() else f"there is no {path}"
        raise CaprError(f"{fact}. Fix: name GloVe's text, or the words.npz of a model.")
    return Subwords.load(path) if path.suffix == ".npz" else read_glove(path)


def _documents(given: Given, descriptions: list[str]) -> tuple[Discourses, list[tuple[Sequence[str], str]]]:
    """What to learn from: made from the documents, or what an interrupted run has made."""
    from capr.annotate.mentions import annotator
    from capr.annotate.vocabulary import Vocabulary
    from capr.evaluate.split import is_test
    from capr.supervise.labels import Labeller
    from capr.train.discourses import Discourses

    made = len(given.files) == 1 and given.files[0].endswith(".discourses.gz")
    if made:
        not_beside(given.files[0], given)
    labeller = Labeller(
        annotator(False, Vocabulary.load(*given.vocabulary or ())),
        cues=given.cues,
        aliases=inputs.aliases(given.aliases),
        held_out=inputs.names(given.without),
        held_out_texts=inputs.texts(given.without_passages),
    )
    described = list(_described(descriptions, labeller))
    kept = given.output / KEPT
    if made:
        return Discourses.load(Path(given.files[0])), described
    if given.resume and kept.is_file():
        return Discourses.load(kept), described
    source = inputs.Documents(given.files, given.format, given.column, False, False, speed=500_000)
    documents = source.documents()
    if given.part == "train":
        documents = (document for document in documents if not is_test(document.id))
    discourses = Discourses.read(documents, labeller)
    given.output.mkdir(parents=True, exist_ok=True)
    discourses.save(kept)
    held = labeller.skipped.get("held out", 0)
    left = f", {held:,} documents and passages left out" if given.without else ""
    count = sum(len(lesson.sentences) for lesson in discourses.lessons)
    print(f"{len(discourses.lessons):,} documents, {count:,} sentences{left}: {kept}", file=sys.stderr)
    return discourses, described


def _described(files: list[str], labeller: Labeller) -> Iterator[tuple[Sequence[str], str]]:
    """Names and sentences of what documents describe, unless it is held out."""
    for document in capr.read(files) if files else ():
        names = labeller.named(document)
        if names:
            for span in capr.sentences(document.text):
                if not labeller.is_held_out_text(document[span]):
                    yield names, document[span]
