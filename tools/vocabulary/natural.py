"""Names in natural order and case, and the key that equal names share."""

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
    for plural_ending, singular_ending in (
        ("itides", "itis"),
        ("oses", "osis"),
        ("yses", "ysis"),
        ("culi", "culus"),
        ("aches", "ache"),
    ):
        if len(word) > len(plural_ending) and word.endswith(plural_ending):
            return word[: -len(plural_ending)] + singular_ending
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(ss|sh|ch|x)es$", word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not re.search(r"(ss|us|is)$", word):
        return word[:-1]
    return word


def key(name: str) -> str:
    """Return the key that equal names share; it ignores case, accents, hyphens, apostrophes, plural and spacing."""
    text = unicodedata.normalize("NFKD", name)
    text = "".join(char for char in text if not unicodedata.combining(char)).lower()
    text = re.sub(r"['’]s\b|['’]", "", text)
    text = re.sub(r"[^a-z0-9+%.]+", " ", text).strip(" .")
    return " ".join(singular(word) for word in text.split())


def uninvert(name: str, free: bool) -> str | None:
    """Turn 'Infarction, Myocardial' into 'Myocardial Infarction'; None if the order is unclear.

    free: the source inverts as a rule (MeSH), so names with several commas count too; otherwise only a short single
    tail does.
    """
    head, *rest = [part.strip() for part in name.split(", ")]
    if not rest:
        return name
    if len(rest) > 3 or any(not part or re.match(r"(and|or)\b", part, re.I) for part in [head, *rest]):
        return None  # a list, not an inversion
    suffixes = [part for part in rest if TAIL.match(part)]  # '..., 7' and '..., due to ...' stay at the end
    prefixes = [part for part in rest if not TAIL.match(part)]
    if not free and not re.fullmatch(r"[^,]+, type [0-9IV]+[A-Za-z]?", name):
        unclear = prefixes and (len(prefixes[0].split()) > 2 or re.search(r"\d|recessive|dominant|linked", prefixes[0]))
        if len(rest) > 1 or unclear:
            return None  # 'deafness, autosomal recessive 5'
    if prefixes and re.search(r" and | or ", head):
        return None
    return " ".join([*prefixes[::-1], head, *suffixes])


def natural_forms(name: str, source: str) -> Iterator[str]:
    """Yield the natural forms of a source's name: none, one or several."""
    name = re.sub(r"\s+", " ", name.replace("’", "'")).strip()
    name = re.sub(r" \((disease|disorder|finding|morphologic abnormality|clinical)\)$", "", name)
    if NOISE.search(name):
        return
    for pattern, short, long in (
        (r"([A-Z][A-Z0-9-]{1,7}) \((.+)\)", 1, 2),  # CVA (Cerebrovascular Accident)
        (r"(.+?),? \(([A-Z][A-Z0-9-]{1,7})\)", 2, 1),  # myocardial infarction (MI)
        (r"([A-Z][A-Z0-9-]{1,7})(?:,| -) ([a-z][^,]{6,})", 1, 2),  # MI, myocardial infarction
    ):
        match = re.fullmatch(pattern, name)
        if match and (short == 2 or "(" in name or match[1][0].lower() == match[2][0]):
            yield match[short]
            if ", " not in match[long]:
                yield match[long]
            return
    if re.search(r"[\[\]]|\) ?$" if source == "DRUGBANK" else r"[()\[\]]", name):
        return
    plain = uninvert(name, source in ("MESH", "DRUGBANK"))
    if plain:
        yield plain


def icd_forms(name: str) -> Iterator[str]:
    """Yield plain forms of ICD-10-CM wording: '[herpes simplex]' is another name, '(primary)' is optional."""
    name = re.sub(r"^Unspecified ", "", name)
    for _ in range(3):
        name = ICD_TAIL.sub("", name).strip()
    if ICD_NOISE.search(name):
        return
    forms = [name]
    match = re.fullmatch(r"(.*?)\s*([^\s\[]+)? \[([^\]]+)\]\s*(.*)", name)
    if match:
        before, word, other_name, rest = (group or "" for group in match.groups())
        is_abbreviation = re.fullmatch(r"[A-Z]{2,6}", other_name)
        forms = [
            f"{before} {word} {rest}",
            f"{other_name} {rest}" if (is_abbreviation and not rest) or not (is_abbreviation or before) else "",
        ]
    for form in forms:
        short, full = re.sub(r" ?\([^)]*\)", "", form), re.sub(r"[()]", "", form)
        for plain in dict.fromkeys([short, full]):
            plain = re.sub(r"\s+", " ", plain).strip()
            plain = (uninvert(plain, False) or "") if short == full else plain
            if plain and (short == full or ", " not in plain):
                yield plain


class Case:
    """Puts names into lower case, except proper names and abbreviations; it learns these from sources in lower case."""

    def __init__(self, names: Iterable[str]) -> None:
        self.lower: Counter[str] = Counter()
        self.upper: Counter[str] = Counter()
        for word in re.findall(r"[A-Za-z]+", "\n".join(names)):
            if word.islower():
                self.lower[word] += 1
            elif word[1:].islower():
                self.upper[word.lower()] += 1

    def is_proper(self, word: str) -> bool:
        return self.upper[word] > self.lower[word]

    def name(self, name: str) -> str:
        eponym = re.search(r"\b(syndrome|disease|sign)$", name, re.I) or "'s" in name
        words, is_first = re.split(r"([A-Za-z]+)", name), True
        for index, word in enumerate(words):
            lower_word = word.lower()
            # An unknown first word before 'syndrome' keeps its capital.
            if (
                word[:1].isupper()
                and word[1:].islower()
                and not self.is_proper(lower_word)
                and (self.lower[lower_word] or not (eponym and is_first))
            ):
                words[index] = lower_word
            is_first = is_first and not word.isalpha()
        return "".join(words)
