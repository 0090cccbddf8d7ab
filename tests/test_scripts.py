"""The scripts of bench/ and tools/ import names that capr has."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for folder in ("bench", "tools") for path in (ROOT / folder).rglob("*.py"))


def capr_imports(path):
    """Yield the module and the name of each import from capr, wherever it is in a script."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "capr":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "capr")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_script_imports_names_that_exist(path):
    missing = []
    for module, name in capr_imports(path):
        try:
            imported = importlib.import_module(module)
            if name and not hasattr(imported, name):
                importlib.import_module(f"{module}.{name}")
        except ImportError as error:
            missing.append(str(error))
    assert missing == []
