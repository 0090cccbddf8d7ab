"""Queries and their wording for the models, the same in training and in search."""

from __future__ import annotations

from dataclasses import dataclass

from capr.annotate.vocabulary import Vocabulary
from capr.documents import CaprError
from capr.segment.aspects import aspect_of, aspects, heading

# Every aspect of the table has its own questions; the first is the wording for search. Training uses all of them and
# the forms below, so that users may write any of them.
WORDINGS = (
    "What are the {aspect} of {entity}?",
    "{entity} ; {aspect}",
    "{aspect} of {entity}",
    "{entity}: {aspect}",
    "{entity} {aspect}",
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a user searches for: a text, or an entity and an aspect.

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
            raise CaprError(f"a query needs either a text or an entity with an aspect, but not both. Fix: {fix}.")

    @property
    def wording(self) -> str:
        """Return the query as a model reads it."""
        return self.wordings()[0]

    def wordings(self) -> list[str]:
        """Return all wordings, the one for search first: questions, then forms with the aspect's usual heading."""
        if self.text:
            return [self.text]
        if not self.aspect or not self.entity:
            return [self.entity or heading(self.aspect)]
        aspect = aspects().get(aspect_of(self.aspect))
        questions = [question.replace("{}", self.entity) for question in (aspect.questions if aspect else ())]
        headings = dict.fromkeys((heading(self.aspect), self.aspect.lower()))
        forms = [form.format(entity=self.entity, aspect=words) for words in headings for form in WORDINGS]
        return list(dict.fromkeys(questions + forms))

    def synonyms(self, vocabulary: Vocabulary | None = None) -> list[str]:
        """Return the other names of the entity."""
        return (vocabulary or Vocabulary.load()).synonyms(self.entity) if self.entity else []
