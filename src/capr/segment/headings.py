"""Headings in clinical notes and articles: finding candidate lines and deciding which of them are headings.

There are two ways to decide. A *lexicon* (headings.tsv) of common headings works without training. *Counts* of the
headings in a training set, with a threshold, replace the lexicon (Lanz and Pecina 2024): a line is then a heading if it
is frequent enough. The threshold also determines how long the sections become.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from capr.documents.document import Document
from capr.documents.outline import Heading
from capr.documents.problem import CaprError

# A short line, or the beginning of a line up to an early colon.
SHORT_OR_COLON = re.compile(r"^(?>[^\r\n:]{1,110})(?=[:\r\n]|\Z)", re.MULTILINE)
# The marks and the number before the words of a heading.
PREFIX = re.compile(
    r"[ \t]*(?P<marks>\#{1,6}[ \t]+|\*\*|__)?"
    r"(?P<number>(?:\d{1,2}(?:\.\d{1,2}){0,3}[.)]?|[IVX]{1,4}[.)]|[A-Z][.)])[ \t]+)?(?=[A-Za-z])"
)
COLON = re.compile(r"(?:\*\*|__)?:+(?:\*\*|__)?")
UNDERLINE = re.compile(r"\r?\n[ \t]*(?:={3,}|-{3,})[ \t]*(?=\r?$)", re.MULTILINE)
LOWER, UPPER = ascii_lowercase.encode(), ascii_uppercase.encode()
LOWER_CASE_WORDS = frozenset("a an and as at by for from in of on or per the to upon with vs via".split())
HEAD_WORDS = frozenset(
    "history exam examination findings diagnosis diagnoses plan course medications medication impression "
    "assessment complaint complaints allergies results investigations procedure procedures recommendations "
    "summary instructions treatment management symptoms causes prognosis prevention complications".split()
)
# Labels of values, which are not headings although they have capitals and a colon.
VALUE_LABELS = frozenset(
    "BP HR RR T TEMP SPO2 SAO2 O2 SAT SATS WT HT BMI WBC RBC HGB HCT PLT NA K CL CO2 HCO3 BUN CR CREAT GLU "
    "GLUCOSE CA MG PHOS INR PT PTT ALT AST ALP TSH BNP CRP ESR LDL HDL HBA1C PO2 PCO2 PH RE MRN DOB NB NOTE "
    "EF LVEF PR QRS QT QTC MD RN NP PA DO TO FROM".split()
)
SALUTATIONS = frozenset("Dear Dr Dr. Mr Mr. Mrs Mrs. Ms Ms. To From Re Cc".split())


def normalised(words: str) -> str:
    """Return the form in which headings compare: lower case, single spaces, no colon, marks or number.

    >>> normalised("2. Past  Medical HISTORY:")
    'past medical history'
    """
    words = re.sub(r"^[\s#*_]*(?:\d+(?:\.\d+)*[.)]?\s+)?|[\s:*_]+$", "", words)
    return " ".join(words.lower().split())


@cache
def lexicon() -> Mapping[str, int]:
    """Return the levels of the common normalised headings: 1 for a section, 2 for a subsection (`lungs`)."""
    table = {}
    lines = files("capr.segment").joinpath("headings.tsv").read_text("utf-8").splitlines()
    for number, line in enumerate(lines[1:], 2):
        heading, _, level = line.partition("\t")
        if heading != normalised(heading) or level not in ("1", "2") or heading in table:
            raise CaprError(f"headings.tsv, line {number}: {line!r} is not a new normalised heading and its level.")
        table[heading] = int(level)
    return table


class HeadingCounts(Counter[str]):
    """The number of lines of a training set that begin with each heading.

    Example:
        >>> counts = HeadingCounts.learn([Document("1", "PLAN: rest\\n"), Document("2", "Plan:\\nfluids\\n")])
        >>> counts["plan"]
        2
    """

    @classmethod
    def learn(cls, documents: Iterable[Document]) -> HeadingCounts:
        """Count every line of the documents that has the form of a heading."""
        counts = cls()
        for document in documents:
            counts.update(normalised(heading.words) for heading in possible_headings(document.text))
        return counts

    @classmethod
    def load(cls, path: str | PathLike[str]) -> HeadingCounts:
        """Load counts from a file that `save` wrote.

        Raises:
            CaprError: the file cannot be read, or does not contain heading counts.
        """
        try:
            table = json.loads(Path(path).read_text("utf-8"))
            return cls({str(heading): int(count) for heading, count in table.items()})
        except OSError as error:
            fix = f"make it with `capr headings FILE... -o {path}`"
            raise CaprError(f"{path}: it cannot be read ({error.strerror}). Fix: {fix}.") from error
        except (ValueError, AttributeError, TypeError) as error:
            fix = "name a file that `capr headings FILE... -o COUNTS` made, or a new one"
            raise CaprError(f"{path}: it does not contain heading counts ({error}). Fix: {fix}.") from error

    def save(self, path: str | PathLike[str]) -> None:
        """Write the counts as JSON, the most frequent headings first."""
        Path(path).write_text(json.dumps(dict(self.most_common()), indent=1, ensure_ascii=False) + "\n", "utf-8")


class HeadingCandidate(NamedTuple):
    """A line that may be a heading or begin with one.

    Attributes:
        text: the text of the document.
        begin, end: the span of the candidate, up to its colon or the end of the line.
        marks: Markdown marks before the words, such as `##`; or an empty string.
        numbered: whether a number precedes the words.
        words: the words of the heading.
        colon: whether a colon follows the words.
    """

    text: str
    begin: int
    end: int
    marks: str
    numbered: bool
    words: str
    colon: bool

    @property
    def alone(self) -> bool:
        """Whether the line has no text after the candidate."""
        return not self.colon or not self.text[self.end : self.end + 200].split("\n", 1)[0].strip()

    @property
    def stands_apart(self) -> bool:
        """Whether a blank line or the start of the text precedes the candidate."""
        before = self.text[max(0, self.begin - 4) : self.begin].replace("\r", "")
        return not before or before.endswith("\n\n") or before == "\n"


def _candidates(text: str) -> Iterator[HeadingCandidate]:
    for line in SHORT_OR_COLON.finditer(text):
        begin, end = line.span()
        colon = COLON.match(text, end)
        if colon is None and (text[end - 1] in ".,;" or text[begin].islower()):
            continue
        prefix = PREFIX.match(text, begin, end)
        if prefix is None:
            continue
        words = text[prefix.end() : end].rstrip(" \t*_")
        if len(words) > 80:
            continue
        if colon is not None:
            end = colon.end()
        yield HeadingCandidate(
            text, begin, end, prefix["marks"] or "", prefix["number"] is not None, words, colon is not None
        )


def possible_headings(text: str) -> Iterator[Heading]:
    """Yield every line that has the form of a heading, regardless of its words."""
    for line in _candidates(text):
        has_form = line.colon or line.marks or _is_capital(line.words) or _is_title(line.words)
        if has_form and len(line.words.split()) <= 8:
            yield Heading(line.begin, line.end, line.words, 1)


def frequent_headings(text: str, counts: Mapping[str, int], threshold: int) -> Iterator[Heading]:
    """Yield the headings that occur at least `threshold` times in the training set, all at level 1."""
    for heading in possible_headings(text):
        if counts.get(normalised(heading.words), 0) >= threshold:
            yield heading


def common_headings(text: str) -> Iterator[Heading]:
    """Yield the lines that are headings by the lexicon or by their form."""
    yield from _common_headings(text, _is_shouting(text))


def _common_headings(text: str, shouting: bool) -> Iterator[Heading]:
    levels = lexicon()
    for line in _candidates(text):
        level = _level(line, levels, shouting)
        if not line.colon and (underline := UNDERLINE.match(text, line.end)):
            yield Heading(line.begin, underline.end(), line.words, level or 1)
        elif level:
            yield Heading(line.begin, line.end, line.words, level)


def is_heading_line(line: str) -> bool:
    """Return whether a line consists of a heading alone, judged without its context."""
    heading = next(_common_headings(line, shouting=False), None)
    return heading is not None and not line[heading.end :].strip()


def _level(line: HeadingCandidate, levels: Mapping[str, int], shouting: bool) -> int:
    """Return the level of a candidate, or 0 if it is not a heading. Headings with `#` rank below all others.

    Args:
        line: the candidate.
        levels: the lexicon.
        shouting: whether the text is mostly in capitals.
    """
    if line.marks.startswith("#"):
        return len(line.marks.strip()) + 1
    words = line.words
    key = " ".join(words.lower().split())
    if line.colon and line.text[line.end : line.end + 1].isalnum():  # "MEDS:aspirin", but not "12:30" or "UA:neg"
        return levels.get(key, 0) if words.isupper() else 0
    if key in levels and (line.colon or (len(key) > 2 and words[0].isupper())):
        return levels[key]
    count = words.count(" ") + 1
    if count > 8 or words[-1] in ".,;!?":
        return 0
    capital = not shouting and _is_capital(words)
    if line.colon and capital:
        return 0 if words in VALUE_LABELS else 1 if line.stands_apart else 2
    if line.colon:
        addresses_person = words.split()[0] in SALUTATIONS  # "Dear Dr Roe:"
        return int(not line.numbered and not addresses_person and _is_title(words) and line.alone)
    if not words[0].isupper() or not line.stands_apart:
        return 0
    return int(capital or (count <= 6 and (line.marks != "" or key.rsplit(" ", 1)[-1] in HEAD_WORDS)))


def _is_capital(words: str) -> bool:
    return words.isupper() and sum(letter.isalpha() for letter in words) > 1


def _is_title(words: str) -> bool:
    """Return whether words are in Title Case, or in Sentence case and at most three."""
    word_list = words.split()
    if not word_list or not word_list[0][0].isupper():
        return False
    return len(word_list) <= 3 or all(
        word[0].isupper() or word in LOWER_CASE_WORDS or not word[0].isalpha() for word in word_list
    )


def _is_shouting(text: str) -> bool:
    """Return whether a text is mostly in capitals, so that capitals do not mark a heading."""
    sample = text[:4000].encode("ascii", "ignore")
    lower = len(sample) - len(sample.translate(None, LOWER))
    return len(sample) - len(sample.translate(None, UPPER)) > lower
