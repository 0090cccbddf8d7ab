"""The model families of `capr train`, with the class and a one-line description of each.

`family` imports the class on demand, so that importing this module does not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from capr import registry
from capr.documents import CaprError

if TYPE_CHECKING:
    from capr.models.family import Family


class FamilyEntry(NamedTuple):
    """A family: `module:Class`, and its line in `capr train --help`."""

    place: str
    help: str


FAMILIES = {
    "bi": FamilyEntry("capr.models.bi:Bi", "Train a bi-encoder from documents: it makes the vectors of a library."),
    "poly": FamilyEntry(
        "capr.models.poly:Poly", "Train a poly-encoder from documents: a ranker that stores token vectors."
    ),
    "late": FamilyEntry(
        "capr.models.late:Late", "Train an encoder with late interaction: it makes vectors of texts and of word pieces."
    ),
    "cross": FamilyEntry("capr.models.cross:Cross", "Train a cross-encoder from documents: the best ranker."),
    "cdv": FamilyEntry("capr.models.cdv_family:DiscourseFamily", "Train a discourse model (CDV) from documents."),
    "reader": FamilyEntry("capr.models.reader:ReaderFamily", "Train a reader from reports with questions."),
    "tagger": FamilyEntry("capr.models.tagger_family:TaggerFamily", "Train a tagger from annotated corpora."),
}


def family(name: str) -> type[Family]:
    """Return the family with a name.

    Raises:
        CaprError: no family has this name, or a library that it needs is not installed.
    """
    if name not in FAMILIES:
        raise CaprError(f"there is no family {name!r} of models. Fix: use {', '.join(FAMILIES)}.")
    try:
        kind: type[Family] = registry.load(FAMILIES[name].place)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "capr":
            raise
        fix = "pip install 'capr[train]'"
        raise CaprError(f"training needs {error.name}, which is not installed. Fix: {fix}.") from error
    return kind
