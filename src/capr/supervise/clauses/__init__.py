"""Questions that plain clauses of a note answer: who did what, to whom, when, where, why, and what was not so.

A sentence is taken apart by rules (`grammar`), what it says is asked for (`asking`), and the question is worded unlike
the note where other names, classes and lay words are known (`rewording`). What is not surely understood is not asked.
"""

from __future__ import annotations

from capr.supervise.clauses.candidates import clause_questions
from capr.supervise.clauses.rewording import plainly

__all__ = ["clause_questions", "plainly"]
