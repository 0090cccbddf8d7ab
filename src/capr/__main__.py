"""`python -m capr` is `capr`."""

from capr.cli import app

app()
