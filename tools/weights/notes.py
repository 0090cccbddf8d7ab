"""Read the clinical notes that built-in models may learn from: ACI-Bench, MTS-Dialog, and case reports under CC BY."""

import csv
import json
import sys

from capr.documents import Annotation, Document, Span

MTS_HEADINGS = {  # headings of MTS-Dialog's sections
    "FAM/SOCHX": "Family and Social History",
    "GENHX": "History of Present Illness",
    "CC": "Chief Complaint",
    "PASTMEDICALHX": "Past Medical History",
    "ROS": "Review of Systems",
    "PASTSURGICAL": "Past Surgical History",
    "ALLERGY": "Allergies",
    "MEDICATIONS": "Medications",
    "ASSESSMENT": "Assessment",
    "EXAM": "Physical Examination",
    "DIAGNOSIS": "Diagnosis",
    "DISPOSITION": "Disposition",
    "PLAN": "Plan",
    "EDCOURSE": "Emergency Department Course",
    "IMMUNIZATIONS": "Immunizations",
    "IMAGING": "Imaging",
    "GYNHX": "Gynecologic History",
    "PROCEDURES": "Procedures",
    "LABS": "Laboratory Data",
}
csv.field_size_limit(sys.maxsize)


def shared_notes(data):
    """Yield ACI-Bench's notes and MTS-Dialog's sections, with their visits in the metadata."""
    for path in sorted((data / "aci_bench").glob("*.csv")):
        if not path.stem.endswith("_metadata"):
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    id = f"aci-{path.stem}-{row['encounter_id']}"
                    yield Document(id, row["note"], metadata={"dialogue": row["dialogue"]})
    for path in sorted((data / "mts_dialog").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                text = row["section_text"]
                if text.strip() and row["section_header"] in MTS_HEADINGS:
                    section = Annotation(
                        "section", Span(0, len(text)), {"heading": MTS_HEADINGS[row["section_header"]]}
                    )
                    id, metadata = f"mts-{path.stem}-{row['ID']}", {"dialogue": row["dialogue"]}
                    yield Document(id, text, metadata=metadata, annotations=(section,))


def cases(data):
    """Yield case reports with a licence that permits sharing."""
    with (data / "e3c_cases" / "cases.jsonl").open(encoding="utf-8") as file:
        for record in map(json.loads, file):
            if record["licence"] in ("CC BY", "CC BY 4.0"):
                yield Document(record["id"], record["text"])
