"""Old public names keep working for one release."""

import importlib
import sys
from types import ModuleType

import pytest
import typer

from capr.annotate.mentions import annotator
from capr.cli import typer_app
from capr.cli.old_options import OLD_OPTIONS, with_new_names
from capr.deprecation import renamed_arguments, renamed_attributes
from capr.search import Answers
from capr.supervise import Labeller


@renamed_arguments(limit="k")
def complete(prefix, k=10):
    return prefix, k


def test_an_old_argument_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"the argument limit of complete\(\) is deprecated; use k") as warnings:
        assert complete("a", limit=3) == ("a", 3)
    assert warnings[0].filename == __file__


def test_an_old_argument_of_a_class_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"the argument cues of Labeller\(\) is deprecated") as warnings:
        assert not Labeller(annotator(False), cues=False).aspects_from_text
    assert warnings[0].filename == __file__


def test_new_arguments_give_no_warning():
    assert complete("a", k=3) == complete("a", 3) == ("a", 3)


def test_an_argument_cannot_have_both_names():
    with pytest.raises(TypeError, match="got both 'k' and its old name 'limit'"):
        complete("a", k=1, limit=2)


def test_an_old_attribute_of_an_object_works_with_a_warning():
    answers = Answers("q", (), 0.5, "reader")
    with pytest.warns(DeprecationWarning, match=r"Answers\.found is deprecated; use Answers\.answered") as warnings:
        assert answers.found is False
    assert warnings[0].filename == __file__


def test_an_old_attribute_of_a_module_works_with_a_warning(monkeypatch):
    module = ModuleType("shop")
    module.Basket = object()
    module.__getattr__ = renamed_attributes("shop", {"Cart": "Basket"})
    monkeypatch.setitem(sys.modules, "shop", module)
    with pytest.warns(DeprecationWarning, match=r"shop\.Cart is deprecated; use shop\.Basket"):
        assert module.Cart is module.Basket
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'Wagon'"):
        _ = module.Wagon


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("capr.documents", "NotThereError", "NotFoundError"),
        ("capr.search", "Added", "AddResult"),
        ("capr.segment", "under", "with_labels"),
        ("capr.supervise", "Record", "PoolPassage"),
        ("capr.supervise.pairs", "Pairs", "TrainingPairs"),
        ("capr.supervise.reports", "of_samples", "sample_reports"),
        ("capr.supervise.reports", "sampled", "sample_questions"),
        ("capr.supervise.visits", "visit", "report_of_visit"),
    ],
)
def test_old_names_of_modules_work_with_a_warning(module, old, new):
    imported = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is deprecated; use {module}\.{new}"):
        assert getattr(imported, old) is getattr(imported, new)


def test_old_options_work_with_a_notice(capsys):
    arguments = ["serve", "library", "--largest-k", "5", "--upload=2", "--port", "0", "--", "--feedback"]
    expected = ["serve", "library", "--max-k", "5", "--max-upload-mb=2", "--port", "0", "--", "--feedback"]
    assert with_new_names(arguments) == expected
    assert capsys.readouterr().err.splitlines() == [
        "--largest-k is now called --max-k; the old name will be removed in the next release.",
        "--upload is now called --max-upload-mb; the old name will be removed in the next release.",
    ]
    assert with_new_names(["ask", "--top=3"]) == ["ask", "-k3"]
    assert with_new_names(["train", "cross", "--hard", "0.5"]) == ["train", "cross", "--label-weight", "0.5"]
    assert with_new_names(["search", "--top", "3"]) == ["search", "--top", "3"]


def test_the_new_names_of_options_exist():
    group = typer.main.get_command(typer_app)
    for name, renamed in OLD_OPTIONS.items():
        command = group.commands[name]
        commands = command.commands.values() if hasattr(command, "commands") else [command]
        options = {
            option
            for command in commands
            for parameter in command.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert set(renamed.values()) <= options
        assert not renamed.keys() & options
