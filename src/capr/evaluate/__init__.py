"""Measures, and the protocols of the papers."""
