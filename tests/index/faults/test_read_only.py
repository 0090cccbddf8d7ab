"""Libraries that this user may not write or read, and libraries without their encoder."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from damages import CALLS, flip_bit, run_calls

from capr.documents import CaprError
from capr.search.library import Library


def read_only(path):
    """Make a library read-only for all users; return the user id for the test, if this process is root."""
    for file in path.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    path.chmod(0o555)
    return 65534 if os.getuid() == 0 else None


def test_a_read_only_library_can_be_searched_but_not_changed(worker, starter, sound, open_folder, expected):
    path = Path(shutil.copytree(sound, open_folder / "library"))
    user = read_only(path)
    reads, changes = [("search", "markd3v1p0"), ("stats",), ("verify",), ("document", "d1")], CALLS[3:4] + CALLS[5:]
    calls = [*reads, *changes]
    answers = {line["call"]: line for line in run_calls(starter, path, user, calls)}
    assert answers["search"]["outcome"][0][0] == "d3"
    assert answers["verify"]["outcome"] == []
    assert "outcome" in answers["stats"]
    assert "outcome" in answers["document"]
    for name in ("add", "remove", "compact"):
        assert "Fix: " in answers[name].get("refused", ""), answers[name]


def test_a_read_only_library_whose_writer_was_killed_can_be_searched(worker, starter, open_folder):
    path = open_folder / "library"
    changes = [["add", [[f"d{number}", 1] for number in range(6)]]]
    child = starter.start("change", path=path, changes=changes, encoder="fake-a", kill=["after words", 3])
    child.wait()
    committed = [id for line in child.lines for id in line.get("kept", [])]
    assert committed
    assert (path / "library.db-wal").stat().st_size
    user = read_only(path)
    calls = [
        ("search", worker.marker(committed[0], 1, 0)),
        ("document", committed[0]),
        ("verify",),
        ("add", ["new", 1]),
    ]
    answers = {line["call"]: line for line in run_calls(starter, path, user, calls)}
    assert answers["search"]["outcome"][0][0] == committed[0]
    assert "outcome" in answers["document"]
    assert answers["verify"]["outcome"] == []
    assert "Fix: " in answers["add"].get("refused", ""), answers["add"]


def test_a_read_only_library_with_a_log_but_no_shared_memory_answers_or_gives_a_fix(worker, starter, open_folder):
    path = open_folder / "library"
    changes = [["add", [[f"d{number}", 1] for number in range(6)]]]
    starter.start("change", path=path, changes=changes, kill=["after words", 2]).wait()
    (path / "library.db-shm").unlink()
    user = read_only(path)
    for line in run_calls(starter, path, user):
        assert line.get("outcome") or "Fix: " in line.get("refused", ""), line


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_a_read_only_library_with_a_damaged_index_answers_or_gives_a_fix(starter, sound, open_folder, name):
    path = Path(shutil.copytree(sound, open_folder / "library"))
    file = max((path / name).iterdir(), key=lambda file: file.stat().st_size)
    flip_bit(file, 0.5)
    user = read_only(path)
    calls = [("search", "cough"), ("verify",), ("add", ["new", 1])]
    answers = {line["call"]: line for line in run_calls(starter, path, user, calls)}
    assert answers["search"].get("outcome") or "Fix: " in answers["search"]["refused"]
    assert "outcome" in answers["verify"] or "Fix: " in answers["verify"]["refused"]
    assert "Fix: " in answers["add"].get("refused", "")


def test_an_unreadable_library_gives_a_fix(starter, sound, open_folder):
    path = Path(shutil.copytree(sound, open_folder / "library"))
    for file in path.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    path.chmod(0o700)
    user = 65534 if os.getuid() == 0 else None
    if user is None:
        path.chmod(0)
    for line in run_calls(starter, path, user):
        assert "Fix: " in line.get("refused", ""), line


def test_a_library_with_an_unreadable_file_answers_or_gives_a_fix(starter, sound, open_folder):
    if os.getuid():
        pytest.skip("only root can act as another user")
    for name in ("library.db", "words/state.json", "words/meta.json", "vectors/state.json"):
        path = Path(shutil.copytree(sound, open_folder / name.replace("/", "-")))
        user = read_only(path)
        (path / name).chmod(0)
        for line in run_calls(starter, path, user, CALLS[:5]):
            assert line.get("outcome") is not None or "Fix: " in line.get("refused", ""), (name, line)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder with an encoder of a few words."""
    onnx = pytest.importorskip("onnx")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("encoder")
    words = {word: number for number, word in enumerate(["?", "cough", "fever", "aspirin", "heart", "knee", "of", "a"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    helper, kinds = onnx.helper, onnx.TensorProto
    table = np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["states"])],
        "encoder",
        [helper.make_tensor_value_info("input_ids", kinds.INT64, ["texts", "pieces"])],
        [helper.make_tensor_value_info("states", kinds.FLOAT, ["texts", "pieces", 8])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    manifest = {"name": "tiny", "kind": "encoder", "dimensions": 8, "pooling": "mean"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def with_model(worker, encoder, tmp_path):
    """A library and the folder of its encoder."""
    folder = Path(shutil.copytree(encoder, tmp_path / "encoder"))
    with Library(tmp_path / "library", encoder=folder) as library:
        library.add([worker.make(f"d{number}", 1) for number in range(6)])
    with Library(tmp_path / "library") as library:
        assert library.search("cough").mode == "hybrid"
        assert library.search("cough", mode="dense").hits
    return tmp_path / "library", folder


LOSSES = {
    "folder": shutil.rmtree,
    **{name: lambda folder, name=name: (folder / name).unlink() for name in ("model.onnx", "manifest.json")},
    "tokenizer.json": lambda folder: (folder / "tokenizer.json").unlink(),
    "empty model": lambda folder: os.truncate(folder / "model.onnx", 0),
    "half of the model": lambda folder: os.truncate(folder / "model.onnx", 100),
    "garbage as model": lambda folder: (folder / "model.onnx").write_bytes(b"garbage" * 100),
    "garbage as tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{}"),
    "garbage as manifest": lambda folder: (folder / "manifest.json").write_text("[]"),
    "bytes as manifest": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe\xff"),
    "other dimensions": lambda folder: (folder / "manifest.json").write_text('{"name": "x", "dimensions": 9}'),
    "another name": lambda folder: (folder / "manifest.json").write_text('{"name": "x", "dimensions": 8}'),
    "a bit of the model": lambda folder: flip_bit(folder / "model.onnx", 0.6),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_library_without_its_encoder_is_searched_by_words_with_a_notice(worker, with_model, loss):
    path, folder = with_model
    LOSSES[loss](folder)
    with Library(path) as library:
        results = library.search("cough")
        assert results.mode == "lexical"
        assert results.hits
        assert any("Fix: " in notice for notice in results.notices)
        with pytest.raises(CaprError, match=r"Fix: "):
            library.search("cough", mode="dense")
        with pytest.raises(CaprError, match=r"Fix: "):
            library.add(worker.make("new", 1))
        assert library.verify().problems == []
        assert library.stats().documents == 6
