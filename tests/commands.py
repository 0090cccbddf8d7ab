"""Run commands as a user does."""

import pytest
from typer.testing import CliRunner

from capr.cli import typer_app


def run(folder, *arguments, code=0):
    """Run a command in a folder, check its exit code, and return its result."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(typer_app, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return result
