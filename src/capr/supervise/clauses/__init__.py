"""Questions that plain clauses of a note answer: who did what, to whom, when, where, why, and what did not happen.

Rules parse a sentence (`grammar`), ask for what it says (`questions`), and word the question differently from the note
if other names, classes and lay words are known (`rewording`). The rules skip every sentence that they are not sure to
understand.
"""

from __future__ import annotations

from capr.supervise.clauses.candidates import clause_questions
from capr.supervise.clauses.rewording import use_lay_words

__all__ = ["clause_questions", "use_lay_words"]
