import importlib.util
import sys
from pathlib import Path

import pytest

import capr
from capr.documents import Document
from capr.segment import HeadingCounts, sections
from capr.segment.headings import lexicon, normalised


def headings_and_bodies(text: str, **options) -> list[tuple[str | None, str]]:
    document = Document("1", text)
    return [(section.heading, document[section.body].strip()) for section in sections(document, **options)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALLERGIES: None.\nPLAN:\nRest.\n", [("ALLERGIES", "None."), ("PLAN", "Rest.")]),
        ("Past Medical History:\n- CHF\n", [("Past Medical History", "- CHF")]),
        (
            "Presenting complaint\nChest pain.\n\nPlan\nECG.",
            [("Presenting complaint", "Chest pain."), ("Plan", "ECG.")],
        ),
        ("1. INDICATION\nCough.\n2. FINDINGS: Clear.", [("INDICATION", "Cough."), ("FINDINGS", "Clear.")]),
        ("Dear Dr Roe,\n\nPLAN: Rest.", [(None, "Dear Dr Roe,"), ("PLAN", "Rest.")]),
        (
            "PHYSICAL EXAM:\nLungs: clear\nABD: soft\nIMPRESSION: Well.",
            [
                ("PHYSICAL EXAM", ""),
                ("PHYSICAL EXAM | Lungs", "clear"),
                ("PHYSICAL EXAM | ABD", "soft"),
                ("IMPRESSION", "Well."),
            ],
        ),
        (
            "Hospital Course:\n# Sepsis: Treated.\n# AKI: Resolved.\nDisposition: Home.",
            [
                ("Hospital Course", ""),
                ("Hospital Course | Sepsis", "Treated."),
                ("Hospital Course | AKI", "Resolved."),
                ("Disposition", "Home."),
            ],
        ),
        (
            "## Assessment\nWell.\n### Plan\nRest.\n",
            [("Assessment", "Well."), ("Assessment | Plan", "Rest.")],
        ),
        ("Symptoms\n========\nPain.\n", [("Symptoms", "Pain.")]),
        ("MEDS:aspirin", [("MEDS", "aspirin")]),
        ("Nothing here is a heading.", [(None, "Nothing here is a heading.")]),
        ("BP: 120/80\nHR: 72", [(None, "BP: 120/80\nHR: 72")]),
        ("The plan was this: rest and fluids.", [(None, "The plan was this: rest and fluids.")]),
        (
            "THE WHOLE NOTE IS IN CAPITALS AND\nSAYS NOTHING.\n",
            [(None, "THE WHOLE NOTE IS IN CAPITALS AND\nSAYS NOTHING.")],
        ),
        ("", []),
    ],
)
def test_the_lexicon_finds_sections(text, expected):
    assert headings_and_bodies(text) == expected


def test_counts_and_threshold_replace_the_lexicon():
    notes = [Document(str(i), "Narrative: it began.\nVerdict: well.\n") for i in range(3)]
    notes.append(Document("x", "Oddity: once.\n"))
    counts = HeadingCounts.learn(notes)
    assert counts == {"narrative": 3, "verdict": 3, "oddity": 1}
    text = "Narrative: it hurts.\nOddity: blue.\nPLAN: rest."
    assert [heading for heading, _ in headings_and_bodies(text, counts=counts, threshold=1)] == ["Narrative", "Oddity"]
    assert [heading for heading, _ in headings_and_bodies(text, counts=counts, threshold=2)] == ["Narrative"]
    assert headings_and_bodies(text, counts=counts, threshold=9) == [(None, text)]


def test_counts_are_saved_and_loaded(tmp_path):
    counts = HeadingCounts({"plan": 3, "café": 1})
    counts.save(tmp_path / "counts.json")
    assert HeadingCounts.load(tmp_path / "counts.json") == counts
    (tmp_path / "bad.json").write_text("[1]")
    with pytest.raises(capr.CaprError, match=r"bad\.json: it does not contain heading counts.*Fix: name a file that"):
        HeadingCounts.load(tmp_path / "bad.json")


def test_annotated_sections_are_used(tmp_path):
    (tmp_path / "a.md").write_text("# Gout\n\nIntro.\n\n## Treatment\nRest.\n### Drugs\nColchicine.\n")
    (document,) = capr.read(tmp_path / "a.md")
    result = [(section.heading, document[section.body].strip()) for section in sections(document)]
    assert result == [("Gout", "Intro."), ("Treatment", "Rest."), ("Treatment | Drugs", "Colchicine.")]


def test_the_lexicon_is_well_formed():
    assert len(lexicon()) > 500
    assert all(heading == normalised(heading) for heading in lexicon())


@pytest.mark.data
def test_headings_in_real_notes_are_found(data, capsys, monkeypatch):
    """Measure on notes that did not serve to tune the rules (bench/headings.py)."""
    path = Path(__file__).parents[2] / "bench" / "headings.py"
    spec = importlib.util.spec_from_file_location("headings_bench", path)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    monkeypatch.setattr(sys, "argv", ["headings", str(data)])
    bench.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "lexicon" in line]
    assert [row[0] for row in rows] == ["mtsamples", "aci_bench"]
    for row in rows:
        precision, recall = float(row[-3]), float(row[-2])
        assert precision >= 0.95
        assert recall >= 0.95
