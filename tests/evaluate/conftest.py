"""Fixtures of the evaluation tests: tiny models, a small MedQuAD, and the real one if its data are there."""

import json
import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from capr.evaluate.task import Task, TaskQuery

_spec = spec_from_file_location("reference", Path(__file__).parents[1] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)

# Three diseases by source, each with answers as (aspect, heading, question, answer); two are about treating gout.
TOPICS = {
    ("GARD", "0000001", "Gout"): [
        ("information", "information", "What is Gout ?", "Gout is an arthritis - of the toe.\n"),
        (
            "symptoms",
            "symptoms and presentation",
            "What are the symptoms of Gout ?",
            "  Symptoms: pain and swelling.  ",
        ),
        ("treatment", "treatment", "What are the treatments for Gout ?", "Treatment of gout: colchicine, rest."),
        ("treatment", "treatment", "What are the treatments for Gout ?", "Allopurinol is a long-term treatment."),
    ],
    ("GHR", "0000002", "Asthma"): [
        ("information", "information", "What is Asthma ?", "Asthma makes it hard to breathe."),
        ("inheritance", "genetic inheritance", "Is Asthma inherited ?", "Genetic inheritance of asthma is complex."),
    ],
    ("NINDS", "0000003", "Stroke"): [
        (
            "treatment",
            "treatment",
            "What are the treatments for Stroke ?",
            "Stroke: thrombolysis within hours, rehabilitation.",
        ),
        ("outlook", "prognosis", "What is the outlook for Stroke ?", "The prognosis of stroke depends on its size."),
    ],
}


@pytest.fixture(scope="session")
def small_medquad(tmp_path_factory):
    """A folder for --data of `capr evaluate medquad`: 8 passages, 7 queries."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "cdv").mkdir()
    documents, queries, sources = [], {}, []
    for (source, number, focus), answers in TOPICS.items():
        path = folder / "medquad" / f"1_{source}_QA" / f"{number}.xml"
        path.parent.mkdir(parents=True)
        path.write_text(_xml(source, number, focus, answers))
        sources.append(f"data/MedQuAD/MedQuAD-master/1_{source}_QA/{number}.xml\tQ1\n")
        begin, annotations = 0, []
        for passage_number, (aspect, heading, question, answer) in enumerate(answers, 1):
            length = len(answer.strip()) + 1
            id = f"{source}_{number}-{passage_number}"
            annotations.append({"begin": begin, "length": length, "id": id, "entity": focus, "aspect": aspect})
            pair = {"entity": focus, "aspect": aspect, "aspectHeading": heading}
            query = queries.setdefault((focus, aspect), {"text": question, "annotations": [pair], "results": []})
            query["results"].append({"id": id, "begin": begin, "length": length})
            begin += length
        record = {"id": f"{source}_{number}", "type": f"{source}_QA", "length": begin, "annotations": annotations}
        documents.append(record)
    (folder / "cdv" / "MedQuAD_test_sources.tsv").write_text("".join(sources))
    annotated = {"documents": documents, "queries": list(queries.values())}
    (folder / "cdv" / "MedQuAD_test_annotations.json").write_text(json.dumps(annotated))
    return folder


def _xml(source, number, focus, answers):
    pairs = "".join(
        f'<QAPair pid="{pair_number}"><Question qid="{number}-{pair_number}" qtype="{aspect}">{question}</Question>'
        f"<Answer>{escape(answer)}</Answer></QAPair>"
        for pair_number, (aspect, _, question, answer) in enumerate(answers, 1)
    )
    group = "<UMLS><CUIs><CUI>C1</CUI></CUIs><SemanticGroup>Disorders</SemanticGroup></UMLS>"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Document id="{number}" source="{source}" url="http://x">'
        f"<Focus>{focus}</Focus><FocusAnnotations>{group}</FocusAnnotations><QAPairs>{pairs}</QAPairs></Document>\n"
    )


@pytest.fixture(scope="session")
def medquad_task(data):
    """CDV's test on MedQuAD."""
    from capr.evaluate.medquad import load

    return load(data)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """The folder of an encoder that reads letters."""
    return reference.encoder_folder(tmp_path_factory.mktemp("models") / "encoder", pooling="mean")


@pytest.fixture(scope="session")
def tiny_late(tmp_path_factory):
    """The folder of an encoder that reads letters, with vectors of word pieces."""
    return reference.late_folder(tmp_path_factory.mktemp("models") / "late")


@pytest.fixture(scope="session")
def tiny_ranker(tmp_path_factory):
    return reference.ranker_folder(tmp_path_factory.mktemp("models") / "ranker")


@pytest.fixture(scope="session")
def tiny_poly(tmp_path_factory):
    folder = reference.encoder_folder(tmp_path_factory.mktemp("models") / "poly", kind="poly", pooling="mean")
    shutil.copy(folder / "model.onnx", folder / "query.onnx")
    return folder


@pytest.fixture
def toy():
    """Two queries over five passages; the relevant candidates come first, as in CDV."""
    passages = {
        "a": "colchicine for gout",
        "b": "gout and gout again",
        "c": "treatment of gout",
        "d": "a stroke",
        "e": "treatment of a stroke",
    }
    queries = [
        TaskQuery(
            "1", "gout", "treatment", "How is gout treated?", frozenset("ac"), ("c", "a", "b", "d"), {"aspect": "x"}
        ),
        TaskQuery("2", "stroke", "treatment", "", frozenset("e"), ("e", "d", "a"), {"aspect": "y"}),
    ]
    return Task("toy", passages, queries)
