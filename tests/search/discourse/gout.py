"""Short articles, and a discourse model that knows their words."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from capr.annotate import Query
from capr.documents import Document

_spec = spec_from_file_location("reference", Path(__file__).parents[2] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)
WordDiscourse = reference.WordDiscourse
ARTICLES = [
    Document(
        "gout",
        "Symptoms\nThe big toe hurts. It is red and swollen.\n\nTreatment\nColchicine helps. So does rest.",
        "Gout",
        {"source": "articles"},
    ),
    Document(
        "asthma",
        "Symptoms\nPeople wheeze. They cough at night.\n\nTreatment\nInhaled steroids help. So does salbutamol.",
        "Asthma",
        {"source": "articles"},
    ),
    Document("note", "PLAN: Start colchicine for the toe.", "Note", {"patient": "p1"}),
]
GOUT = Query(entity="gout", aspect="symptoms")


def documents_and_headings(results):
    return [(hit.document, hit.headings[-1].lower() if hit.headings else "") for hit in results]
