"""Reads the written notes, which are fictional, and splits them by patient.

A test and a development part stay out of all training: a tenth and a sixteenth of the patients.
"""

import gzip
import json

from capr.documents import Document, Span
from capr.supervise.reports import Report, ReportQuestion
from capr.supervise.split import is_test

TEST, DEVELOPMENT = 0.1, 0.16  # shares of the patients, the first within the second
PARTS = ("train", "dev", "test")


def written_reports(data, part):
    """Yield the notes of a part with their questions, as reports."""
    with gzip.open(data / "written_notes" / "notes.jsonl.gz", "rt", encoding="utf-8") as file:
        for record in map(json.loads, file):
            if part_of(record["patient"]) != part:
                continue
            metadata = {name: record[name] for name in ("patient", "date", "type")}
            document = Document(record["id"], record["text"], record["title"], metadata)
            questions = (
                ReportQuestion(
                    question["id"],
                    question["question"],
                    tuple(Span(answer["begin"], answer["end"]) for answer in question["answers"]),
                )
                for question in record["questions"]
            )
            yield Report(document, tuple(questions))


def part_of(patient):
    """Return the part that a patient's notes belong to."""
    return "test" if is_test(patient, TEST) else "dev" if is_test(patient, DEVELOPMENT) else "train"
