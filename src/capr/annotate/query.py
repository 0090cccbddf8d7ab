"""A query, and the one place where it is put into words for the models, in training and in search alike."""

from __future__ import annotations

from dataclasses import dataclass

from capr.annotate.aspects import aspect_of, aspects
from capr.annotate.vocabulary import Vocabulary
from capr.documents import CaprError

# An aspect of the table has questions of its own, of which the first is the wording for search. Training uses all, and
# the forms below, so that a user may use any.
WORDINGS = (
    "What are the {aspect} of {entity}?",
    "{entity} ; {aspect}",
    "{aspect} of {entity}",
    "{entity}: {aspect}",
    "{entity} {aspect}",
)


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: a question in plain words, or an aspect of an entity.

    >>> Query(entity="heart attack", aspect="PMHx").wording
    'Did the patient have heart attack in the past?'
    >>> Query("What helps against hives?").wording
    'What helps against hives?'
    """

    text: str = ""
    entity: str = ""
    aspect: str = ""

    def __post_init__(self) -> None:
        for name in ("text", "entity", "aspect"):
            object.__setattr__(self, name, getattr(self, name).strip())
        if bool(self.text) == bool(self.entity or self.aspect):
            fix = "give a text, or an entity with or without an aspect"
            raise CaprError(
                f"a query is either a text or an entity with an aspect, not both and not neither. Fix: {fix}."
            )

    @property
    def wording(self) -> str:
        """The query as a model reads it."""
        return self.wordings()[0]

    def wordings(self) -> list[str]:
        """All ways to put it, the one for search first: questions, the aspect's usual heading, then as it was given."""
        if self.text:
            return [self.text]
        if not self.aspect or not self.entity:
            return [self.entity or heading(self.aspect)]
        known = aspects().get(aspect_of(self.aspect))
        questions = [question.replace("{}", self.entity) for question in (known.questions if known else ())]
        headings = dict.fromkeys((heading(self.aspect), self.aspect.lower()))
        forms = [form.format(entity=self.entity, aspect=words) for words in headings for form in WORDINGS]
        return list(dict.fromkeys(questions + forms))

    def synonyms(self, vocabulary: Vocabulary | None = None) -> list[str]:
        """Other names of the entity, which the query also means."""
        return (vocabulary or Vocabulary.load()).synonyms(self.entity) if self.entity else []


def heading(aspect: str) -> str:
    """The heading under which an aspect usually stands.

    >>> heading("risk"), heading("Dawn song")
    ('risk factors', 'dawn song')
    """
    known = aspects().get(aspect_of(aspect))
    return known.heading if known else aspect.lower()
