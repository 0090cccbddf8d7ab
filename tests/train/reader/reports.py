"""Short reports: a reader learns from them in seconds."""

import random

from capr.documents import Document, Span
from capr.models.reader import ReaderFamily
from capr.supervise.paragraph_questions import WeightedReports
from capr.supervise.reports import Report, ReportQuestion

ASPECT_WORDS = {"symptoms": ("wheeze", "cough", "rash", "fever"), "treatment": ("tablets", "rest", "surgery", "drops")}
FILLER = ("the", "of", "is", "and", "in", "with", "often", "for", "days", "night")


def small_reports(count: int = 80, seed: int = 0) -> list[Report]:
    """Return reports with symptoms and a treatment. One report in four lacks one of them."""
    draw = random.Random(seed)
    reports = []
    for number in range(count):
        text, questions = "", []
        silent = draw.choice(list(ASPECT_WORDS)) if number % 4 == 0 else None
        for kind, words in ASPECT_WORDS.items():
            text += " ".join(draw.choices(FILLER, k=draw.randint(3, 9))) + " "
            begin = len(text)
            if kind != silent:
                text += " and ".join(draw.sample(words, draw.randint(1, 2)))
            answers = (Span(begin, len(text)),) if kind != silent else ()
            questions.append(ReportQuestion(f"{number} {kind}", f"{kind}?", answers))
            text += " " + " ".join(draw.choices(FILLER, k=draw.randint(3, 9))) + " "
        reports.append(Report(Document(f"r{number}", text), tuple(questions)))
    return reports


REPORTS = small_reports()
SOURCES = [WeightedReports(REPORTS, name="small")]


def family_of(bert, **changes) -> ReaderFamily:
    settings = {"lengths": (60, 120), "pieces": 40, "stride": 8, "question": 8, "answer": 8, "validation": 0.2}
    return ReaderFamily(**{"base": str(bert), "licence": "CC0-1.0", **settings, **changes})
