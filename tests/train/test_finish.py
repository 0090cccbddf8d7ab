"""The checks that all trainings share, and what a product of an objective writes."""

import pytest
import torch

from capr.documents import CaprError
from capr.models.writable import Writable
from capr.train.finish import TrainedObjective, begin, check_close, check_share, is_finished, too_few


class Numbers(Writable):
    def save_weights(self, folder):
        (folder / "weights").write_text("1")

    def manifest(self):
        return {"kind": "numbers"}

    def export(self, folder):
        (folder / "model.onnx").write_text("2")


class TrainedNumbers(TrainedObjective):
    def check(self, folder):
        return {}


def test_an_objective_writes_its_own_product(tmp_path):
    product = TrainedNumbers(Numbers())
    product.save_weights(tmp_path / "torch")  # the folder is new
    product.export(tmp_path)
    assert product.manifest() == {"kind": "numbers"}
    assert ((tmp_path / "torch" / "weights").read_text(), (tmp_path / "model.onnx").read_text()) == ("1", "2")


def test_an_exported_network_may_differ_up_to_a_limit():
    expected = torch.tensor([[1.0, 2.0]])
    check_close(expected + 0.25, expected, 0.25)
    check_close(torch.zeros(0, 2), torch.zeros(0, 2), 0.0)
    with pytest.raises(CaprError, match=r"the exported network differs from torch by 0\.5\. Fix: report it with the"):
        check_close(expected - 0.5, expected, 0.25)


def test_an_exported_network_may_decide_otherwise_in_a_twentieth_of_the_cases(tmp_path):
    check_share(0.96, "model says no in {} of the cases", tmp_path)
    with pytest.raises(CaprError) as error:
        check_share(0.5, "model says no in {} of the cases", tmp_path)
    assert str(error.value) == (
        "the exported model says no in 50% of the cases. "
        f"Fix: report it with the base's name; the torch weights are in {tmp_path / 'torch'}."
    )


def test_too_little_to_learn_from_is_counted():
    assert str(too_few("3 passages", "0 queries", "name more")) == (
        "there are 3 passages to train on and 0 queries to validate with, which is too few. Fix: name more."
    )


@pytest.mark.parametrize("files", [("training.json",), ("model.onnx", "manifest.json")])
def test_a_finished_model_is_replaced_only_by_a_resumed_run(tmp_path, files):
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(CaprError) as error:
        begin(tmp_path, False)
    fix = "name another folder with -o, or remove it"
    assert str(error.value) == f"{tmp_path} has a finished model already. Fix: {fix}."
    begin(tmp_path, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_a_checkpoint_is_not_deleted(tmp_path):
    for name in ("model.onnx", "manifest.json", "checkpoint.pt"):
        (tmp_path / name).touch()
    assert not is_finished(tmp_path)  # it was interrupted while it was checked
    with pytest.raises(CaprError, match=r"has the checkpoint of an unfinished training\. Fix: continue with --resume"):
        begin(tmp_path, False)
    begin(tmp_path, True)
    assert (tmp_path / "checkpoint.pt").exists()


@pytest.mark.parametrize("name", ["model.onnx", "manifest.json"])
def test_an_unfinished_model_is_replaced(tmp_path, name):
    (tmp_path / name).touch()
    begin(tmp_path, False)
    assert not (tmp_path / "model.onnx").exists()
