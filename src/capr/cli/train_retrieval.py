"""`capr train bi`, `poly` and `cross`: teach a network to find the passage that answers, from plain documents."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capr.cli import inputs
from capr.cli.options import spread
from capr.documents import CaprError

if TYPE_CHECKING:
    from capr.train.loop import Report
    from capr.train.pairs import Pairs

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The model.")]
Base = Annotated[
    str, typer.Option("--base", metavar="MODEL", help="A Hugging Face encoder to start from: a folder, or a name.")
]
Part = Annotated[str, typer.Option("--part", help="all, or train: without the fifth that capr evaluate tests on.")]
Layers = Annotated[int, typer.Option("--layers", min=0, help="Layers of the base to keep; 0 for all.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="How often each passage is drawn.")]
Batch = Annotated[int, typer.Option("--batch", min=2, help="Queries in a step.")]
LearningRate = Annotated[float, typer.Option("--learning-rate")]
Negatives = Annotated[int, typer.Option("--negatives", min=0, help="Passages that look as if they answered, a query.")]
Pieces = Annotated[int, typer.Option("--pieces", min=8, help="Word pieces that are read of a passage.")]
Views = Annotated[
    str,
    typer.Option("--views", help="How often passages are read bare, and under what."),
]
Short = Annotated[
    float,
    typer.Option("--short", min=0, max=1, help="Share of batches whose passages are cut to 12, 25 or 50 words."),
]
Blend = Annotated[
    float,
    typer.Option("--blend", min=0, max=1, help="Share of the base's weights in the end: keeps what it could do."),
]
Shared = Annotated[bool, typer.Option("--shared/--separate", help="One encoder for queries and passages, or two.")]
Markers = Annotated[bool, typer.Option("--markers/--no-markers", help="Tell them apart by [QUERY] and [PASSAGE].")]
Context = Annotated[
    bool, typer.Option("--context/--no-context", help="Read a passage with its surroundings (Longformer).")
]
Patience = Annotated[int, typer.Option("--patience", min=0, help="Validations without improvement to stop after.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed trains the same model.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")]
Device = Annotated[str | None, typer.Option("--device", help="cuda or cpu; what there is if not given.")]
Licence = Annotated[str, typer.Option("--licence", help="Of the documents, for the model card.")]

READING = {  # how documents are read, by the name of the field
    "part": "--part", "cues": "--no-cues", "without": "--without", "without_passages": "--without-passages",
    "aliases": "--aliases", "vocabulary": "--vocabulary", "format": "--format", "column": "--column",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Given:
    """What is learned from, and what is left out: of every command that trains from documents."""

    files: inputs.Files
    output: Output
    licence: Licence = ""
    resume: Resume = False
    part: Part = "all"
    cues: inputs.Cues = True
    without: inputs.Without = None
    without_passages: inputs.WithoutPassages = None
    aliases: inputs.Aliases = None
    vocabulary: inputs.VocabularyTables = None
    format: inputs.Format = None
    column: inputs.Column = None


@dataclass(frozen=True, kw_only=True)
class Common(Given):
    """What all three commands are given."""

    base: Base
    layers: Layers = 0
    views: Views = "text=1,opening=1,heading=1,title=1"
    short: Short = 0.25
    blend: Blend = 0.0
    patience: Patience = 3
    seed: Seed = 1
    device: Device = None


@spread
def bi(
    common: Common,
    shared: Shared = True,
    markers: Markers = False,
    pooling: Annotated[str, typer.Option("--pooling", help="cls or mean.")] = "cls",
    similarity: Annotated[str, typer.Option("--similarity", help="cosine or dot.")] = "cosine",
    temperature: Annotated[float, typer.Option("--temperature", help="By which scores are divided.")] = 0.03,
    dimensions: Annotated[
        str, typer.Option("--dimensions", help="Nested sizes of vectors, with commas between: 384,192,96.")
    ] = "",
    teacher: Annotated[
        str | None, typer.Option("--teacher", metavar="FOLDER", help="A ranker whose rankings are learned, too.")
    ] = None,
    context: Context = False,
    epochs: Epochs = 6,
    batch: Batch = 64,
    learning_rate: LearningRate = 5e-5,
    negatives: Negatives = 3,
    pieces: Pieces = 256,
) -> None:
    """Train a bi-encoder from documents: no labels are needed. It makes the vectors of a library.

    Queries are made from the documents themselves (see capr supervise): entities are titles and mentions, aspects are
    headings. A twentieth of the documents is kept to validate on. Interrupted, the same command with --resume goes on.
    Several GPUs: torchrun --nproc-per-node 4 -m capr train bi ... Needs the extra `train`.

    Example: capr train bi articles.jsonl --base bge-small-en-v1.5 -o bi
    """
    sizes = [size.strip() for size in dimensions.split(",") if size.strip()]
    if not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise CaprError(f"--dimensions {dimensions!r} is no list of numbers. Fix: write --dimensions 384,192,96.")
    nested = tuple(map(int, sizes))
    one_of("--pooling", pooling, ("cls", "mean"))
    one_of("--similarity", similarity, ("cosine", "dot"))
    recipe = {
        "kind": "bi", "shared": shared, "markers": markers, "pooling": pooling,
        "similarity": similarity, "temperature": temperature, "dimensions": nested,
        "teachers": (teacher,) if teacher else (), "context": context,
    }  # fmt: skip
    schedule = {"epochs": epochs, "batch": batch, "learning_rate": learning_rate}
    _train(common, recipe, {"negatives": negatives, "pieces": pieces}, schedule)


@spread
def poly(
    common: Common,
    shared: Shared = True,
    markers: Markers = False,
    project: Annotated[
        bool, typer.Option("--project/--no-project", help="CAPR's equation 2, or Humeau's plain attention.")
    ] = True,
    scaled: Annotated[bool, typer.Option("--scaled/--no-scaled", help="Divide by sqrt(d) before the softmax.")] = False,
    codes: Annotated[int, typer.Option("--codes", min=0, help="Vectors kept of a passage; 0 for all tokens.")] = 0,
    similarity: Annotated[str, typer.Option("--similarity", help="dot or cosine.")] = "dot",
    temperature: Annotated[float, typer.Option("--temperature", help="By which scores are divided.")] = 1.0,
    context: Context = False,
    epochs: Epochs = 6,
    batch: Batch = 32,
    learning_rate: LearningRate = 5e-5,
    negatives: Negatives = 3,
    pieces: Pieces = 256,
) -> None:
    """Train a poly-encoder from documents: a ranker that keeps the token vectors of passages.

    Made from the documents as by capr train bi. Needs the extra `train`.

    Example: capr train poly articles.jsonl --base bge-small-en-v1.5 -o poly
    """
    one_of("--similarity", similarity, ("dot", "cosine"))
    recipe = {
        "kind": "poly", "shared": shared, "markers": markers, "project": project,
        "scaled": scaled, "codes": codes, "similarity": similarity, "temperature": temperature, "context": context,
    }  # fmt: skip
    schedule = {"epochs": epochs, "batch": batch, "learning_rate": learning_rate}
    _train(common, recipe, {"negatives": negatives, "pieces": pieces}, schedule)


@spread
def cross(
    common: Common,
    teacher: Annotated[
        list[str] | None,
        typer.Option("--teacher", metavar="FOLDER", help="A ranker whose rankings are learned, too; may be repeated."),
    ] = None,
    hard: Annotated[
        float, typer.Option("--hard", help="How much what is known to answer counts beside a teacher's opinion.")
    ] = 0.3,
    epochs: Epochs = 3,
    batch: Batch = 16,
    learning_rate: LearningRate = 4e-5,
    negatives: Negatives = 15,
    pieces: Pieces = 288,
) -> None:
    """Train a cross-encoder from documents: a ranker that reads query and passage together.

    Made from the documents as by capr train bi. With --teacher and --layers a large ranker teaches a small one. Needs
    the extra `train`.

    Example: capr train cross articles.jsonl --base ms-marco-MiniLM-L-12-v2 -o cross
    """
    recipe = {
        "kind": "cross", "teachers": tuple(teacher or ()), "hard": hard,
    }  # fmt: skip
    schedule = {"epochs": epochs, "batch": batch, "learning_rate": learning_rate}
    _train(common, recipe, {"negatives": negatives, "pieces": pieces}, schedule)


def _train(common: Common, recipe: Mapping[str, Any], reading: Mapping[str, Any], schedule: Mapping[str, Any]) -> None:
    try:
        from capr.train.loop import Schedule
        from capr.train.objectives import Reading
        from capr.train.parallel import parallel, together
        from capr.train.retrieval import Recipe, train
    except ImportError as error:
        fix = "pip install 'capr[train]'"
        raise CaprError(f"training needs {error.name}, which is not installed. Fix: {fix}.") from error
    views = _views(common.views)
    one_of("--part", common.part, ("all", "train"))
    if common.device is not None:
        one_of("--device", common.device, ("cuda", "cpu"))
    recipe = {**recipe, "base": common.base, "layers": common.layers, "blend": common.blend, "licence": common.licence}
    schedule = {**schedule, "patience": common.patience, "seed": common.seed}
    if common.device:
        schedule["device"] = common.device
    with parallel() as first:
        if not first:
            together()
        pairs = _pairs(common, common.seed, bool(recipe.get("context")), first)
        if first:
            together()
        with inputs.steps() as told:

            def progress(report: Report) -> None:
                told(str(recipe["kind"]), report.step, report.steps, report.loss)
                if report.scores and first:
                    shown = ", ".join(f"{name} {100 * value:.1f}" for name, value in report.scores.items())
                    print(f"step {report.step:,} of {report.steps:,}: validation {shown}", file=sys.stderr)

            scores = train(
                pairs, Recipe(**recipe), Reading(**reading, views=views, short=common.short), Schedule(**schedule),
                common.output, common.resume, progress,
            )  # fmt: skip
    if first:
        shown = ", ".join(f"{name} {100 * value:.1f} %" for name, value in scores.items())
        print(f"{common.output}: {shown}")


def _pairs(common: Common, seed: int, context: bool, first: bool) -> Pairs:
    """What to learn from: made from the documents, or what an interrupted run has made."""
    from capr.annotate.mentions import annotator
    from capr.annotate.vocabulary import Vocabulary
    from capr.evaluate.split import is_test
    from capr.supervise.labels import Labeller, labelled
    from capr.supervise.pool import Pool
    from capr.train.pairs import Pairs

    if len(common.files) == 1 and common.files[0].endswith(".pairs.gz"):
        not_beside(common.files[0], common)
        return Pairs.load(Path(common.files[0]))
    kept = common.output / "training.pairs.gz"
    if (common.resume or not first) and kept.is_file():
        return Pairs.load(kept)
    vocabulary = Vocabulary.load(*common.vocabulary or ())
    source = inputs.Documents(common.files, common.format, common.column, False, False, speed=500_000)
    labeller = Labeller(
        annotator(False, vocabulary),
        cues=common.cues,
        aliases=inputs.aliases(common.aliases),
        held_out=inputs.names(common.without),
        held_out_texts=inputs.texts(common.without_passages),
    )
    documents = source.documents()
    if common.part == "train":
        documents = (document for document in documents if not is_test(document.id))
    with Pool(labelled(documents, labeller)) as pool, inputs.progress("draws") as progress:
        pairs = Pairs.drawn(pool, vocabulary, seed, progress=progress, context=context)
    common.output.mkdir(parents=True, exist_ok=True)
    pairs.save(kept)
    held = labeller.skipped.get("held out", 0)
    left = f", {held:,} documents and passages left out" if common.without else ""
    print(f"{len(pairs.passages):,} passages, {len(pairs.draws):,} queries{left}: {kept}", file=sys.stderr)
    return pairs


def _views(given: str) -> tuple[tuple[str, float], ...]:
    """`text=2,heading=1` as pairs."""
    found = []
    for part in given.split(","):
        name, equals, weight = part.strip().partition("=")
        try:
            found.append((name, float(weight if equals else 1)))
            if not 0 <= found[-1][1] < float("inf"):
                raise ValueError(weight)
        except ValueError as error:
            raise CaprError(f"--views {given!r} is not understood. Fix: write text=2,heading=1.") from error
        one_of("--views", name, ("text", "opening", "heading", "title"))
    if not any(weight > 0 for _, weight in found):
        raise CaprError(f"--views {given!r} leaves nothing to read. Fix: write text=2,heading=1.")
    return tuple(found)


def not_beside(path: str, given: Given) -> None:
    """Complains of options that say how to read documents, beside a file that was made of them before."""
    usual = {field.name: field.default for field in fields(given)}
    # A list that was not given may be empty or None.
    named = [option for name, option in READING.items() if (getattr(given, name) or None) != (usual[name] or None)]
    if named:
        fact = f"{path} was made of documents before, and {' and '.join(named)} would change nothing"
        raise CaprError(f"{fact}. Fix: make it again from the documents with these options, or leave them out.")


def one_of(option: str, given: str, known: tuple[str, ...]) -> None:
    """Complains if what an option was given is not known."""
    if given not in known:
        raise CaprError(f"{option} knows no {given!r}. Fix: use {' or '.join(known)}.")
