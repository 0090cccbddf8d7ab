"""Check the layers: imports point one way through the folders, and each folder needs only the packages of its work."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "capr"
# An import may point only to the same layer or to a layer above it in this list.
LAYERS = (
    "version",
    "deprecation",
    "registry",
    "documents",
    "samples",
    "text",
    "segment",
    "runtime",
    "annotate",
    "measures",
    "supervise",
    "models",
    "train",
    "index",
    "search",
    "evaluate",
    "serve",
    "cli",
    "testing",
    "__init__",
    "__main__",
)
DATA = {"weights"}  # folders without code
# The packages that each part must not need, because a machine that only trains, or never trains, may lack them. A
# folder with a line of its own, such as an engine, does not follow the line of the layer around it.
NO_MODELS = ("faiss", "fastapi", "ir_measures", "matplotlib", "rich", "tantivy", "torch", "transformers", "typer")
WITHOUT = {
    **dict.fromkeys(("documents", "text", "segment", "runtime", "annotate", "measures", "supervise"), NO_MODELS),
    "evaluate": ("defusedxml", "faiss", "rich", "tantivy", "typer"),
    "index": ("defusedxml", "faiss", "rich", "tantivy", "typer"),
    "index/embedded": ("defusedxml", "rich", "torch", "transformers", "typer"),
    **dict.fromkeys(
        ("models", "train"),
        (
            "defusedxml",
            "faiss",
            "fastapi",
            "gensim",
            "ir_measures",
            "matplotlib",
            "onnx",
            "onnxruntime",
            "rich",
            "tantivy",
            "tokenizers",
            "transformers",
            "typer",
        ),
    ),
    "testing": ("defusedxml", "faiss", "hypothesis", "onnx", "rich", "tantivy", "torch", "typer"),
    "search": ("fastapi", "ir_measures", "matplotlib", "onnx", "rich", "torch", "transformers", "typer"),
}
NAMED = re.compile(r"capr\.[\w.]+:\w+")  # an import that a registry does later
IMPORT_WITHOUT = """
import sys
for name in {missing}:
    sys.modules[name] = None  # importing it fails
import importlib
for name in {modules}:
    importlib.import_module(name)
"""


def layer_of(file: Path) -> str:
    inside = file.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def part_of(file: Path) -> str:
    """Return the innermost folder of a file with a line in `WITHOUT`."""
    inside = file.relative_to(SOURCE).as_posix()
    return max((part for part in WITHOUT if inside.startswith(f"{part}/")), key=len, default="")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the layer of every import of capr in a file, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            if node.module == "capr":
                yield from ((node.lineno, layer_of_module(f"capr.{alias.name}")) for alias in node.names)
            else:
                yield node.lineno, layer_of_module(node.module)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, layer_of_module(alias.name)) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            yield node.lineno, layer_of_module(node.value.partition(":")[0])


def layer_of_module(module: str) -> str:
    package, *inner = module.split(".")
    if package != "capr":
        return ""
    return inner[0] if inner and inner[0] in LAYERS else "__init__"


FILES = sorted(SOURCE.rglob("*.py"))


def test_every_folder_is_a_layer():
    assert {layer_of(file) for file in FILES} == set(LAYERS)
    assert {folder.name for folder in SOURCE.iterdir() if folder.is_dir()} - set(LAYERS) <= {*DATA, "__pycache__"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_import_points_down(file):
    level = LAYERS.index(layer_of(file))
    errors = [
        f"line {line}: {layer_of(file)} imports {imported}"
        for line, imported in imports(ast.parse(file.read_text("utf-8")))
        if imported and LAYERS.index(imported) > level
    ]
    assert not errors


def test_imports_are_recognised():
    source = "from capr.search import Library\nimport capr.cli\nfrom capr import index\nimport capr\nimport numpy\n"
    source += "A = {'a': 'capr.train.loop:Loop'}\n"
    assert [imported for _, imported in imports(ast.parse(source))] == [
        "search",
        "cli",
        "index",
        "__init__",
        "",
        "train",
    ]


@pytest.mark.parametrize("part", WITHOUT)
def test_a_part_needs_only_its_packages(part):
    """Import all modules of a part without the packages of the other parts."""
    files = [file for file in FILES if part_of(file) == part]
    names = [".".join(file.relative_to(SOURCE.parent).with_suffix("").parts) for file in files]
    modules = [name.removesuffix(".__init__") for name in names]
    program = IMPORT_WITHOUT.format(missing=WITHOUT[part], modules=modules)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_import_capr_is_quick():
    program = "import sys, capr; print(sorted({name.split('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    heavy = ["faiss", "numpy", "onnxruntime", "tantivy", "tokenizers", "torch", "typer"]
    result = subprocess.run([sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
