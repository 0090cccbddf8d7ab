"""Names: what makes two spellings one name."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files

WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*(?:['’][sS](?![^\W_]))?")  # accents may stand apart
ABBREVIATION = re.compile(r"(?=.{2,5}$)[^\W_]*[A-Z].*[A-Z][^\W_]*")
PLURALS = (
    ("itides", "itis"), ("oses", "osis"), ("yses", "ysis"), ("stases", "stasis"), ("theses", "thesis"),
    ("culi", "culus"), ("aches", "ache"),
)  # fmt: skip
POSSESSIVE = re.compile(r"['’][sS]$")
ADDS_ES = re.compile(r"(?:ss|sh|ch|x)es$")
NO_PLURAL = re.compile(r"(?:ss|us|is)$")


def key(name: str) -> str:
    """The form under which a name is looked up: case, accents, hyphens, a final 's and the plural do not count.

    Abbreviations keep their case, since `MI` is not `mi`.

    >>> key("Crohn's Disease"), key("beta-blockers"), key("Sjögren syndromes"), key("MIs"), key("Ménière’s")
    ('crohn disease', 'beta blocker', 'sjogren syndrome', 'MI', 'meniere')
    """
    if is_abbreviation(POSSESSIVE.sub("", name)):
        return " ".join(abbreviation(word) for word in WORD.findall(name))
    return plain_key(name)


def plain_key(name: str) -> str:
    """The same for a name of which not even the case counts.

    >>> plain_key("FEVERS")
    'fever'
    """
    return " ".join(plain(word) for word in WORD.findall(name))


def plain(word: str) -> str:
    """A word without case, accents and plural."""
    word = POSSESSIVE.sub("", word)
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return singular(word.lower())


def abbreviation(word: str) -> str:
    """An abbreviation without its plural s.

    >>> abbreviation("DVTs"), abbreviation("SDs"), abbreviation("tPA")
    ('DVT', 'SD', 'tPA')
    """
    word = POSSESSIVE.sub("", word)
    return word[:-1] if len(word) > 2 and word[-1] == "s" and word[-2].isupper() else word


def is_abbreviation(name: str) -> bool:
    """Whether the case of a name is part of it: at most five letters, two of them capitals.

    >>> [name for name in ("MI", "tPA", "N/V", "DVTs", "AIDS", "Crohn", "HELLP syndrome") if is_abbreviation(name)]
    ['MI', 'tPA', 'N/V', 'DVTs', 'AIDS']
    """
    return ABBREVIATION.fullmatch(name) is not None


def singular(word: str) -> str:
    """The singular of an English or medical noun, by its ending.

    >>> [singular(word) for word in ("fractures", "metastases", "biopsies", "arthritides", "diabetes", "reflux")]
    ['fracture', 'metastasis', 'biopsy', 'arthritis', 'diabete', 'reflux']
    """
    if not word.endswith(("s", "i")):
        return word
    for end, one in PLURALS:
        if word.endswith(end) and len(word) > len(end):
            return word.removesuffix(end) + one
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and ADDS_ES.search(word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not NO_PLURAL.search(word):
        return word[:-1]
    return word


@cache
def ordinary() -> frozenset[str]:
    """The names of ordinary.txt, which mean no entity in clinical text."""
    lines = files("capr.annotate").joinpath("ordinary.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@cache
def _ordinary_keys() -> frozenset[str]:
    return frozenset(key(name).lower() for name in ordinary())


def is_ordinary(name: str) -> bool:
    """Whether a name means no entity.

    >>> is_ordinary("Lead"), is_ordinary("leads"), is_ordinary("lead poisoning")
    (True, True, False)
    """
    return key(name).lower() in _ordinary_keys()
