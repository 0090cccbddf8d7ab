"""Print the fifty names that Python code uses most: variables, parameters, fields, functions and classes.

    python tools/prose/identifiers.py [FOLDER ...]     # default: src

Only names that the code of the folders defines count, each time that they are used.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SHOWN = 50


def main() -> None:
    """Print a count and a name per line, the most common first."""
    paths = [path for folder in sys.argv[1:] or ["src"] for path in Path(folder).rglob("*.py")]
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    own = {name for tree in trees for name in defined(tree)} - {"_", "self", "cls"}
    counts = Counter(name for tree in trees for name in used(tree) if name in own)
    for name, count in counts.most_common(SHOWN):
        print(f"{count:6}  {name}")


def defined(tree: ast.AST) -> Iterator[str]:
    """Yield the names that the code defines.

    >>> sorted(set(defined(ast.parse("def search(query):\\n    hits = index.search(query)\\n    print(hits)"))))
    ['hits', 'query', 'search']
    """
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name


def used(tree: ast.AST) -> Iterator[str]:
    """Yield each name at each of its uses."""
    yield from defined(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name


if __name__ == "__main__":
    main()
