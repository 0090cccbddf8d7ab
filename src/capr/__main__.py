"""Run the command line with `python -m capr`."""

from capr.cli import app

app()
