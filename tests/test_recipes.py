"""Follow each recipe of CONTRIBUTING.md in a copy of capr: add one file and one line, then use the new part."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import onnx
import pytest
from onnx import TensorProto, helper

SOURCE = Path(__file__).parents[1] / "src" / "capr"
TABLE = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text().partition("## Recipes: one file, one line")[2]


class Tree:
    """A copy of capr, to add files and lines to and to run programs in."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(SOURCE, folder / "capr", ignore=shutil.ignore_patterns("__pycache__", "weights"))

    def write(self, file, text):
        path = self.folder / "capr" / file
        assert not path.exists()
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text).lstrip())

    def add_line(self, file, after, line):
        """Add a line after the first line that contains the text `after`."""
        path = self.folder / "capr" / file
        lines = path.read_text().splitlines()
        index = next(index for index, existing in enumerate(lines) if after in existing)
        lines.insert(index + 1, line)
        path.write_text("\n".join(lines) + "\n")

    def run(self, *arguments, module="capr"):
        command = [sys.executable, "-m", module, *map(str, arguments)]
        return self._run(command)

    def python(self, program):
        return self._run([sys.executable, "-c", dedent(program)])

    def _run(self, command):
        environment = os.environ | {"PYTHONPATH": str(self.folder), "COLUMNS": "80"}
        result = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def registry(part):
    """Return the file that registers a part, according to the table of recipes."""
    (cell,) = re.findall(rf"^\| {re.escape(part)} \|.*\| (.*) \|$", TABLE, re.MULTILINE)
    return re.findall(r"`([\w/]+\.(?:py|js))`", cell)[0]


def test_recipe_of_a_format(tree):
    tree.write(
        "documents/shout.py",
        """
        from capr.documents.document import Document
        from capr.documents.format import Format, Records
        from capr.documents.source import Source

        def read(source: Source) -> Records:
            yield Document(source.name, source.text().upper())

        FORMAT = Format("shout", "notes in capitals", lambda name, head: name.endswith(".shout"), read)
        """,
    )
    tree.add_line(registry("a format"), "MODULES = (", '    "shout",')
    (tree.folder / "a.shout").write_text("no fever")
    assert json.loads(tree.run("read", "a.shout", "--json"))["text"] == "NO FEVER"


def test_recipe_of_a_command(tree):
    tree.write(
        "cli/shout.py",
        """
        def command(words: str) -> None:
            print(words.upper())
        """,
    )
    tree.add_line(registry("a command"), "COMMANDS = {", '    "shout": "shout:command",')
    assert tree.run("shout", "no fever") == "NO FEVER\n"


def test_recipe_of_a_protocol(tree):
    tree.write(
        "evaluate/first.py",
        """
        from dataclasses import dataclass

        from capr.evaluate.protocol import CandidateProtocol, ReadDocuments
        from capr.evaluate.task import Task, TaskQuery

        @dataclass(frozen=True, kw_only=True)
        class First(CandidateProtocol):
            \"\"\"The query for each document is its first word.\"\"\"

            def task(self, read: ReadDocuments) -> Task:
                texts = {document.id: document.text for document in read(self.data, None, ())}
                queries = [TaskQuery(id, text.split()[0], "", "", frozenset([id])) for id, text in texts.items()]
                return Task("first", texts, queries)
        """.replace('\\"', '"'),
    )
    tree.add_line(registry("a protocol"), "PROTOCOLS = {", '    "first": "capr.evaluate.first:First",')
    (tree.folder / "notes").mkdir()
    for word in ("gout", "hives"):
        (tree.folder / "notes" / f"{word}.txt").write_text(f"{word} is treated.")
    report = json.loads(tree.run("evaluate", "first", "--data", "notes", "--model", "bm25", "--json"))
    assert (report["protocol"], report["measures"]["R@1"]) == ("first", 1.0)


def test_recipe_of_a_kind_of_model(tree):
    tree.write(
        "runtime/length.py",
        """
        from dataclasses import dataclass
        from pathlib import Path

        from capr.runtime import manifest

        @dataclass(frozen=True)
        class LengthManifest(manifest.Manifest):
            sign: float = 1.0

        class LengthRanker:
            def __init__(self, folder, **options):
                self.manifest = self.read_manifest(Path(folder))

            @staticmethod
            def read_manifest(folder):
                return manifest.parse(LengthManifest, manifest.read_json(folder, ""), folder / manifest.FILE, "")

            def scores(self, query, passages):
                return [self.manifest.sign * len(text) for text in passages]
        """,
    )
    line = '    "length": Kind("ranker", "capr.runtime.length:LengthRanker"),'
    tree.add_line(registry("a kind of model to run"), "KINDS: Mapping", line)
    (tree.folder / "shortest").mkdir()
    manifest = {"name": "shortest", "kind": "length", "sign": -1.0}
    (tree.folder / "shortest" / "manifest.json").write_text(json.dumps(manifest))
    output = tree.python("""
        from capr import Document, Library
        with Library("library", encoder="none", ranker="shortest") as library:
            library.add([Document("long", "Gout, and gout again, and gout."), Document("short", "Gout.")])
            print(*(hit.document for hit in library.search("gout")))
        """)
    assert output == "short long\n"


def test_recipe_of_an_input_of_rankers(tree):
    tree.write(
        "runtime/letters.py",
        """
        import numpy as np

        from capr.runtime.inputs import Pair

        class LetterInputs:
            file = "manifest.json"
            names = ("lengths",)
            together = 1000

            @classmethod
            def of(cls, folder, manifest, pieces):
                return cls()

            def pairs(self, query, passages):
                return [Pair(len(passage.text), 1) for passage in passages]

            def arrays(self, pairs):
                return {"lengths": np.array([[pair.ids] for pair in pairs], np.float32)}
        """,
    )
    line = '    "letters": "capr.runtime.letters:LetterInputs",'
    tree.add_line(registry("an input of rankers"), "INPUTS = {", line)
    lengths, scores = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["pairs", 1]) for name in ("lengths", "scores")
    )
    graph = helper.make_graph([helper.make_node("Neg", ["lengths"], ["scores"])], "shortest", [lengths], [scores])
    (tree.folder / "shortest").mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tree.folder / "shortest" / "model.onnx")
    manifest = {"name": "shortest", "kind": "ranker", "inputs": "letters"}
    (tree.folder / "shortest" / "manifest.json").write_text(json.dumps(manifest))
    output = tree.python("""
        from capr.runtime.kinds import load_model
        print(load_model("shortest", "ranker").scores("gout", ["Gout.", "Gout is painful."]))
        """)
    assert output == "[-5.0, -16.0]\n"


def test_recipe_of_training_data_and_a_network(tree):
    tree.write(
        "cli/sources/lines.py",
        """
        from dataclasses import dataclass
        from pathlib import Path
        from typing import ClassVar

        @dataclass(frozen=True, kw_only=True)
        class Lines:
            parallel: ClassVar[bool] = False

            file: Path

            def load(self, family, schedule, first):
                return self.file.read_text().splitlines()

            def train(self, data, family, schedule, progress):
                return {"lines": len(data) * family.times}

            def summary(self, scores):
                return f"learned from {scores['lines']} lines"
        """,
    )
    tree.write(
        "models/counter.py",
        """
        from dataclasses import dataclass
        from typing import ClassVar

        from capr.models.family import Family, Schedule, option

        @dataclass(frozen=True, kw_only=True)
        class Counter(Family):
            learns_from: ClassVar[str] = "lines"
            schedule: ClassVar[Schedule] = Schedule(device="cpu")

            times: int = option(1, "How often each line counts.", least=1)
        """,
    )
    tree.add_line(registry("a kind of training data"), "SOURCES = {", '    "lines": "capr.cli.sources.lines:Lines",')
    entry = '    "counter": FamilyEntry("capr.models.counter:Counter", "Count lines."),'
    tree.add_line(registry("a network, and its training"), "FAMILIES = {", entry)
    (tree.folder / "notes.txt").write_text("one\ntwo\n")
    assert tree.run("train", "counter", "notes.txt", "--times", "3") == "learned from 6 lines\n"
    assert "Count lines." in tree.run("train", "--help")


def test_recipe_of_a_kind_of_result(tree):
    tree.write(
        "search/titles.py",
        """
        from dataclasses import dataclass
        from typing import Any

        from capr.search.listing import Listing
        from capr.search.resources import Resources

        @dataclass(frozen=True)
        class Title:
            title: str

            def as_json(self) -> dict[str, Any]:
                return {"title": self.title}

        @dataclass(frozen=True)
        class Titles(Listing[Title]):
            titles: tuple[Title, ...]
            name = "titles"
            notices: tuple[str, ...] = ()

        def titles(resources: Resources) -> Titles:
            return Titles(tuple(Title(document.title) for document in resources.index.documents()))
        """,
    )
    line = "    titles = lambda self: __import__('capr.search.titles').search.titles.titles(self.resources)"
    tree.add_line(registry("a kind of result"), "# --- searching and asking ---", line)
    output = tree.python("""
        from capr import Document, Library
        with Library("library", encoder="none") as library:
            library.add([Document("a", "x", "Gout", {"patient": "p1"}), Document("b", "x", "Hives", {"patient": "p2"})])
            print(library.titles().as_json(), len(library.within({"patient": "p2"}).titles()))
        """)
    assert output == "{'notices': [], 'titles': [{'title': 'Gout'}, {'title': 'Hives'}]} 1\n"


def test_recipe_of_a_vector_space(tree):
    line = 'SPACES["pictures"] = Space("pictures", "pictures", "{} passages have no picture yet. Fix: add {}.")'
    tree.add_line("index/spaces.py", "SPACES = {", line)
    output = tree.python("""
        import numpy as np
        from capr import Document, Library
        from capr.index import SPACES, Filters, PassageKey
        from capr.runtime.identity import EncoderIdentity
        pictures = SPACES["pictures"]
        with Library("library", encoder="none") as library:
            library.add([Document("a", "Gout."), Document("b", "Hives.")])
            with library.index.writing() as writer:
                writer.set_encoder(EncoderIdentity("p", "0" * 32, 2, ""), pictures)
                vectors = {PassageKey("a", 0): [1, 0], PassageKey("b", 0): [0, 1]}
                writer.set_vectors({key: np.array(v, np.float32) for key, v in vectors.items()}, pictures)
                writer.commit()
            (match,) = library.index.dense(np.array([0, 1], np.float32), 1, Filters(), space=pictures)
            print(match.key, library.verify().problems)
        """)
    assert output == "PassageKey(document='b', passage_index=0) []\n"


def test_recipe_of_an_engine(tree):
    tree.write(
        "index/remembered/engine.py",
        """
        from capr.testing import ReferenceIndex

        OPEN = {}

        def open_remembered(location, create):
            return OPEN.setdefault(location, ReferenceIndex())
        """,
    )
    line = 'ENGINES["remembered"] = "capr.index.remembered.engine:open_remembered"'
    tree.add_line(registry("an engine"), "ENGINES = {", line)
    output = tree.python("""
        from capr import Document, Library
        with Library("remembered://here", encoder="none", ranker="none") as library:
            library.add(Document("a", "Gout is painful."))
            print(library.search("gout")[0].document, library.stats().documents)
        """)
    assert output == "a 1\n"


def test_recipe_of_a_route(tree):
    tree.write(
        "serve/routes/shout.py",
        """
        from fastapi import APIRouter

        router = APIRouter()

        @router.get("/shout")
        async def shout(words: str) -> str:
            return words.upper()
        """,
    )
    tree.add_line(registry("a route"), "ROUTES = (", '    ("shout", API),')
    output = tree.python("""
        from capr import Document, Library
        from capr.serve.application import application
        from capr.serve.settings import Settings
        from starlette.testclient import TestClient
        with Library("library", encoder="none") as library:
            library.add(Document("a", "Gout."))
        settings = Settings(library="library", encoder="none", ranker="none", reader="none")
        with TestClient(application(settings), base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
            print(client.get("/api/shout?words=gout").json())
        """)
    assert output == "GOUT\n"


def test_every_recipe_names_a_registry_that_exists():
    rows = re.findall(r"^\| (an? [^|]*) \|.*\|$", TABLE, re.MULTILINE)
    assert len(rows) == 11
    for row in rows:
        assert (SOURCE / registry(row.strip())).is_file(), row
