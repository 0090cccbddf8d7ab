"""Names in natural order and case, and the key by which two names are the same."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator

MAX_CHARS, MAX_WORDS = 80, 10  # longer names never occur in a text
NOISE = re.compile(
    r"susceptibility|association with|protection against|modifier of|obsolete|otherwise specified|\bNOS\b|\bNEC\b|"
    r"not elsewhere|unspecified|\bother\b|specified|unknown|classified|\(disorder\)|resistance to infection|"
    r"without mention|caused by mutation|chromosome type|gene product|disease characteristic|allergenic extract|"
    r"allergen|pollen|quantitative trait|\bany site\b|[{}<>=|\t&\ufffd]|^\W|\bsuspected\b",
    re.I,
)
ICD_NOISE = re.compile(
    r"\bother\b|specified|elsewhere|\bNEC\b|\bNOS\b|classified|encounter|sequela|right|left|bilateral|unilateral|"
    r"multiple sites|conditions? in|^\W|\bnot\b|any condition|:|;|(first|second|third) trimester|stage \d|\bcode\b|"
    r"adverse effect|underdosing|without mention|^in |^due to|\bscore\b|coma scale|symptoms and signs|\bother\b",
    re.I,
)
ICD_TAIL = re.compile(
    r",? (unspecified( [a-z]+| as to [a-z ]+)?|(part|site|type|cause|organism|region|degree|side|level|severity) "
    r"unspecified|(part|site|type|cause|organism) not specified|NOS|not otherwise specified|without complications?|"
    r"not elsewhere classified|NEC)$",
    re.I,
)
TAIL = re.compile(
    r"(of|with|without|due|in|on|from|to|by|after|during|caused|and|or|not|for|at|induced by)\b|"
    r"(\d+[A-Za-z]?|[IVX]+[a-z]?)$",
    re.I,
)
CHEMICAL = re.compile(r"\d[,'\"(]|\(|\d-\w+-\d|[a-z]{22}|^\d+-|\"|\.$|^[a-z]+-\d{1,3}$|,\S")


def singular(word: str) -> str:
    for end, one in (("itides", "itis"), ("oses", "osis"), ("yses", "ysis"), ("culi", "culus"), ("aches", "ache")):
        if len(word) > len(end) and word.endswith(end):
            return word[: -len(end)] + one
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(ss|sh|ch|x)es$", word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not re.search(r"(ss|us|is)$", word):
        return word[:-1]
    return word


def key(name: str) -> str:
    """What makes two names the same: case, accents, hyphens, apostrophes, plural and spacing are ignored."""
    text = unicodedata.normalize("NFKD", name)
    text = "".join(c for c in text if not unicodedata.combining(c)).lower()
    text = re.sub(r"['’]s\b|['’]", "", text)
    text = re.sub(r"[^a-z0-9+%.]+", " ", text).strip(" .")
    return " ".join(singular(word) for word in text.split())


def uninvert(name: str, free: bool) -> str | None:
    """'Infarction, Myocardial' becomes 'Myocardial Infarction'; None where the order cannot be told.

    free: the source inverts as a rule (MeSH), so several commas are read too; elsewhere only a short single tail is.
    """
    head, *rest = [part.strip() for part in name.split(", ")]
    if not rest:
        return name
    if len(rest) > 3 or any(not part or re.match(r"(and|or)\b", part, re.I) for part in [head, *rest]):
        return None  # a list, not an inversion
    after = [part for part in rest if TAIL.match(part)]  # '..., 7' and '..., due to ...' stay behind
    before = [part for part in rest if not TAIL.match(part)]
    if not free and not re.fullmatch(r"[^,]+, type [0-9IV]+[A-Za-z]?", name):
        unclear = before and (len(before[0].split()) > 2 or re.search(r"\d|recessive|dominant|linked", before[0]))
        if len(rest) > 1 or unclear:
            return None  # 'deafness, autosomal recessive 5'
    if before and re.search(r" and | or ", head):
        return None
    return " ".join([*before[::-1], head, *after])


def natural_forms(name: str, source: str) -> Iterator[str]:
    """The natural forms of a source's name: none, one or several."""
    name = re.sub(r"\s+", " ", name.replace("’", "'")).strip()
    name = re.sub(r" \((disease|disorder|finding|morphologic abnormality|clinical)\)$", "", name)
    if NOISE.search(name):
        return
    for pattern, short, long in (
        (r"([A-Z][A-Z0-9-]{1,7}) \((.+)\)", 1, 2),  # CVA (Cerebrovascular Accident)
        (r"(.+?),? \(([A-Z][A-Z0-9-]{1,7})\)", 2, 1),  # myocardial infarction (MI)
        (r"([A-Z][A-Z0-9-]{1,7})(?:,| -) ([a-z][^,]{6,})", 1, 2),
    ):  # MI, myocardial infarction
        found = re.fullmatch(pattern, name)
        if found and (short == 2 or "(" in name or found[1][0].lower() == found[2][0]):
            yield found[short]
            if ", " not in found[long]:
                yield found[long]
            return
    if re.search(r"[\[\]]|\) ?$" if source == "DRUGBANK" else r"[()\[\]]", name):
        return
    plain = uninvert(name, source in ("MESH", "DRUGBANK"))
    if plain:
        yield plain


def icd_forms(name: str) -> Iterator[str]:
    """ICD-10-CM wording in plain words: '[herpes simplex]' is another name, '(primary)' may be left out."""
    name = re.sub(r"^Unspecified ", "", name)
    for _ in range(3):
        name = ICD_TAIL.sub("", name).strip()
    if ICD_NOISE.search(name):
        return
    forms = [name]
    found = re.fullmatch(r"(.*?)\s*([^\s\[]+)? \[([^\]]+)\]\s*(.*)", name)
    if found:
        before, word, other, rest = (group or "" for group in found.groups())
        alone = re.fullmatch(r"[A-Z]{2,6}", other)
        forms = [f"{before} {word} {rest}", f"{other} {rest}" if (alone and not rest) or not (alone or before) else ""]
    for form in forms:
        short, full = re.sub(r" ?\([^)]*\)", "", form), re.sub(r"[()]", "", form)
        for plain in dict.fromkeys([short, full]):
            plain = re.sub(r"\s+", " ", plain).strip()
            plain = (uninvert(plain, False) or "") if short == full else plain
            if plain and (short == full or ", " not in plain):
                yield plain


class Case:
    """Lower case, save for proper names and abbreviations, as the sources that write so teach it."""

    def __init__(self, names: Iterable[str]) -> None:
        self.lower: Counter[str] = Counter()
        self.upper: Counter[str] = Counter()
        for word in re.findall(r"[A-Za-z]+", "\n".join(names)):
            if word.islower():
                self.lower[word] += 1
            elif word[1:].islower():
                self.upper[word.lower()] += 1

    def proper(self, low: str) -> bool:
        return self.upper[low] > self.lower[low]

    def name(self, name: str) -> str:
        eponym = re.search(r"\b(syndrome|disease|sign)$", name, re.I) or "'s" in name
        words, first = re.split(r"([A-Za-z]+)", name), True
        for i, word in enumerate(words):
            low = word.lower()
            if (
                word[:1].isupper()
                and word[1:].islower()
                and not self.proper(low)
                and (self.lower[low] or not (eponym and first))
            ):  # an unknown first word before 'syndrome' stays
                words[i] = low
            first = first and not word.isalpha()
        return "".join(words)
