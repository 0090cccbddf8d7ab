"""Check the prose of the documentation, docstrings, comments and messages: `make prose`.

proselint finds clichés, redundancy and misspelt terms; `rules.tsv` has the habits that this project avoids. Code,
links and quoted output are not checked.

    python tools/prose/check.py [FILE ...]
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "tests", "tools", "bench")
NOT_CHECKED = (
    "src/capr/samples/articles",
    "src/capr/samples/notes",
    "tests/test_prose.py",
)  # clinical text, bad examples
LITERAL = {"pain in the", "in a word"}  # meant literally
RULES = Path(__file__).with_name("rules.tsv")
# Straight quotes and "..." are the style of this project. "poly-encoder" has no adverb, and "very" may be a cue.
SKIPPED = {"misc.phrasal_adjectives": False, "weasel_words.very": False}
CONFIG = {**DEFAULT, "checks": {**SKIPPED, **DEFAULT["checks"], "typography": False}}
WORDS = 5  # a string constant with so many words is a message
CODE = re.compile(r"```.*?^\s*```|`[^`\n]*`|\]\([^)]*\)|https?://\S+|<!--.*?-->|^ {4,}\S.*$", re.DOTALL | re.MULTILINE)
NOT_TEXT = re.compile(r"\S")


@dataclass(frozen=True)
class Finding:
    """Words to replace, and why."""

    path: Path
    line: int
    words: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r}. {self.advice}"


def main() -> int:
    """Print the findings, and return 1 if there are any."""
    register()
    paths = [Path(name) for name in sys.argv[1:]] or list(files())
    findings = [finding for path in paths for finding in check(path, path.read_text("utf-8"))]
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings in {len(paths)} files")
    return 1 if findings else 0


def register() -> None:
    """Register the checks of proselint."""
    if not CheckRegistry().checks:
        CheckRegistry().register_many(__register__)


def files() -> Iterator[Path]:
    """Yield the files with prose."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for suffix in ("md", "py"):
            for path in sorted((ROOT / folder).rglob(f"*.{suffix}")):
                if not path.relative_to(ROOT).as_posix().startswith(NOT_CHECKED):
                    yield path


def check(path: Path, text: str) -> Iterator[Finding]:
    """Yield what to replace in the prose of a file."""
    prose = prose_of_python(text) if path.suffix == ".py" else without_code(text)
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for pattern, advice in rules():
        for match in pattern.finditer(prose):
            yield Finding(name, prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), advice)
    if prose.strip():
        for result in LintFile(str(name), prose).lint(CONFIG):
            begin, end = result.check_result.span
            words = f"\n{prose}\n"[begin:end]
            if (
                "_" in words or words.lower() in LITERAL or re.search(r"\n\s*\n", words)
            ):  # hidden code, or the end of a paragraph
                continue
            yield Finding(name, result.pos[0], " ".join(words.split()), result.check_result.message)


def rules() -> list[tuple[re.Pattern[str], str]]:
    """Return the rules of this project: a pattern and advice."""
    lines = [line for line in RULES.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in (line.split("\t") for line in lines)]


def without_code(text: str) -> str:
    """Return Markdown with underscores for its code and links, so that lines and columns stay.

    >>> without_code("Use `x y` here.")
    'Use __ __ here.'
    """
    return CODE.sub(hide, text)


def prose_of_python(source: str) -> str:
    """Return the comments, docstrings and messages of Python code, with all else as blanks.

    >>> prose_of_python("x = 1  # The number of hits.").strip()
    'The number of hits.'
    """
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    blank = list(NOT_TEXT.sub(" ", source))
    doctests = re.compile(r"^\s*(>>>|\.\.\.).*(\n\s*[^\s>.].*)*", re.MULTILINE)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        begin = starts[token.start[0] - 1] + token.start[1]
        text = token.string
        if token.type == tokenize.COMMENT:
            text = " " + text[1:] if not re.match(r"# ?(noqa|type:|fmt:|pragma)", text) else ""
        elif token.type == tokenize.STRING and is_message(text):
            text = doctests.sub(hide, text.replace('"', " "))
        else:
            continue
        text = without_code(text) if token.type == tokenize.COMMENT else INLINE.sub(hide, text)
        blank[begin : begin + len(text)] = text
    return "".join(blank)


INLINE = re.compile(r"``?[^`\n]*`?`|\{[^{}\n]*\}|https?://\S+")


def hide(match: re.Match[str]) -> str:
    """Return underscores for the characters of the match."""
    return NOT_TEXT.sub("_", match[0])


def is_message(literal: str) -> bool:
    """Whether a string constant has enough words to be prose."""
    try:
        value = ast.literal_eval(literal)
    except (SyntaxError, ValueError):
        return False
    if not isinstance(value, str) or not re.search(r"\b(a|the|is|are|of|to|with|for|not)\b", value):
        return False  # a list of words, or SQL
    if literal.lower().startswith(("r", "fr")) or re.search(r"^ *def \w+\(", value, re.MULTILINE):
        return False  # a regular expression, or code
    return len(re.findall(r"[A-Za-z]{2,}[,.;:]?(?=\s|$)", value)) >= WORDS


if __name__ == "__main__":
    sys.exit(main())
