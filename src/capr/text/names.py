"""Names: the keys under which different spellings of a name are equal."""

from __future__ import annotations

import re
import unicodedata

WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*(?:['’][sS](?![^\W_]))?")  # accents may be separate characters
ABBREVIATION = re.compile(r"(?=.{2,5}$)[^\W_]*[A-Z].*[A-Z][^\W_]*")
PLURALS = (
    ("itides", "itis"),
    ("oses", "osis"),
    ("yses", "ysis"),
    ("stases", "stasis"),
    ("theses", "thesis"),
    ("culi", "culus"),
    ("aches", "ache"),
)
POSSESSIVE = re.compile(r"['’][sS]$")
ADDS_ES = re.compile(r"(?:ss|sh|ch|x)es$")
NO_PLURAL = re.compile(r"(?:ss|us|is)$")


def key(name: str) -> str:
    """Return the key of a name, which ignores case, accents, hyphens, a final 's and the plural.

    Abbreviations keep their case, because `MI` is not `mi`.

    >>> key("Crohn's Disease"), key("beta-blockers"), key("Sjögren syndromes"), key("MIs"), key("Ménière’s")
    ('crohn disease', 'beta blocker', 'sjogren syndrome', 'MI', 'meniere')
    """
    if is_abbreviation(POSSESSIVE.sub("", name)):
        return " ".join(abbreviation(word) for word in WORD.findall(name))
    return plain_key(name)


def plain_key(name: str) -> str:
    """Return the key of a name, which also ignores the case of abbreviations.

    >>> plain_key("FEVERS")
    'fever'
    """
    return " ".join(plain(word) for word in WORD.findall(name))


def plain(word: str) -> str:
    """Return a word in lower case and in the singular, without accents and a final 's."""
    word = POSSESSIVE.sub("", word)
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return singular(word.lower())


def abbreviation(word: str) -> str:
    """Return an abbreviation without its plural s.

    >>> abbreviation("DVTs"), abbreviation("SDs"), abbreviation("tPA")
    ('DVT', 'SD', 'tPA')
    """
    word = POSSESSIVE.sub("", word)
    return word[:-1] if len(word) > 2 and word[-1] == "s" and word[-2].isupper() else word


def is_abbreviation(name: str) -> bool:
    """Return whether a name is an abbreviation, whose case matters: two to five characters with two capitals.

    >>> [name for name in ("MI", "tPA", "N/V", "DVTs", "AIDS", "Crohn", "HELLP syndrome") if is_abbreviation(name)]
    ['MI', 'tPA', 'N/V', 'DVTs', 'AIDS']
    """
    return ABBREVIATION.fullmatch(name) is not None


def singular(word: str) -> str:
    """Return the singular of an English or medical noun, by its ending.

    >>> [singular(word) for word in ("fractures", "metastases", "biopsies", "arthritides", "diabetes", "reflux")]
    ['fracture', 'metastasis', 'biopsy', 'arthritis', 'diabete', 'reflux']
    """
    if not word.endswith(("s", "i")):
        return word
    for plural_ending, singular_ending in PLURALS:
        if word.endswith(plural_ending) and len(word) > len(plural_ending):
            return word.removesuffix(plural_ending) + singular_ending
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and ADDS_ES.search(word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not NO_PLURAL.search(word):
        return word[:-1]
    return word
