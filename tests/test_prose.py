"""The check of the prose reports the right words and lines."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("proselint")
CHECK = Path(__file__).parents[1] / "tools" / "prose" / "check.py"
spec = importlib.util.spec_from_file_location("prose_check", CHECK)
prose_check = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = prose_check
spec.loader.exec_module(prose_check)


@pytest.fixture(scope="module", autouse=True)
def proselint_checks():
    prose_check.register()


def findings(name, text):
    return [(finding.line, finding.words) for finding in prose_check.check(Path(name), text)]


def test_finds_the_rules_in_markdown():
    assert findings("page.md", "Fine.\n\nWhoever has a token may search.") == [(3, "Whoever")]


def test_finds_the_errors_of_proselint():
    assert findings("page.md", "This is is wrong.") == [(1, "is is")]


def test_ignores_code_and_links_in_markdown():
    assert findings("page.md", "Use `whoever` here.\n\n```python\nwhoever = 1\n```\n\n[page](whoever.md)") == []


def test_finds_prose_in_docstrings_comments_and_messages():
    source = '"""Whoever calls this gets a token."""\n\n# Serves whoever asks.\nfail("the token of whoever asks is not valid")\n'
    assert findings("module.py", source) == [(1, "Whoever"), (3, "whoever"), (4, "whoever")]


def test_ignores_code_and_word_lists_in_python():
    assert findings("module.py", 'whoever = "whoever whom whose which that"\n# Use `whoever` here.\n') == []


def test_every_rule_has_a_pattern_and_advice():
    assert len(prose_check.rules()) >= 10
    assert all(advice for _, advice in prose_check.rules())
