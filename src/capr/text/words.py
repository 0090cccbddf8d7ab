"""The pattern of a word, for code that treats a text as a list of words."""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W_]+")  # a hyphen separates words, so "Ehlers" and "Danlos" both find "Ehlers-Danlos"
