"""Evaluation: the protocols of the papers, and the measures of their results."""
