"""`capr train` reads the judgements that a server exports."""

import pytest

from capr.documents import Document
from capr.search import Library
from capr.serve.database import ServerDatabase
from capr.serve.feedback_export import pairs
from capr.serve.masking import Masking
from capr.supervise.pairs import TrainingPairs

TITLES = ("Asthma", "Gout", "Measles", "Sepsis", "Malaria", "Rabies", "Migraine", "Pneumonia", "Psoriasis", "Epilepsy")
TINY = ("--epochs", "1", "--batch", "4", "--pieces", "32", "--negatives", "1", "--device", "cpu")


@pytest.mark.parametrize("kind", ["bi", "cross"])
def test_feedback_becomes_a_model(run, bert, tmp_path, monkeypatch, kind):
    split = TrainingPairs.split
    monkeypatch.setattr(TrainingPairs, "split", lambda self, share, seed=0: split(self, 0.3, seed))
    with Library(tmp_path / "library", encoder="none") as library:
        for title in TITLES:
            text = f"SYMPTOMS: {title} is often a rash with fever.\n\nTREATMENT: For {title} there is rest and tablets."
            library.add(Document(title, text, title))
        database = ServerDatabase(tmp_path / "server.db")
        for title in TITLES:
            symptoms, treatment = (stored.entry.passage.span for stored in library.passages(title))
            database.judge("a", {"query": f"What helps against {title}?"}, (title, *treatment), True)
            database.judge("a", {"query": f"What helps against {title}?"}, (title, *symptoms), False)
            database.judge("b", {"entity": title, "aspect": "Symptoms"}, (title, *symptoms), True)
        content, ids = pairs(database.judgements(), library, Masking(None, library))
    assert ids == list(TITLES)
    file = tmp_path / "feedback.pairs.gz"
    file.write_bytes(content)
    result = run(kind, file, "--base", bert, "-o", tmp_path / "out", *TINY)
    assert result.code == 0, result.err
    assert (tmp_path / "out" / "model.onnx").is_file()
