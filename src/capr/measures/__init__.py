"""Measures that ir_measures does not have."""
