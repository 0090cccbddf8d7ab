"""A user-defined family needs one file (`pooled.py`) and one line in the registry."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from capr.cli import app
from capr.documents import CaprError, Document, Span
from capr.models.families import FAMILIES, FamilyEntry, family
from capr.models.family import Schedule
from capr.runtime.inputs import Candidate
from capr.runtime.kinds import load_model
from capr.search import Library
from capr.train.ranking import train

DISEASES = ("Asthma", "Gout", "Measles", "Sepsis", "Malaria", "Rabies", "Migraine", "Psoriasis", "Anemia", "Scabies")


@pytest.fixture
def registered(monkeypatch):
    """The line in the registry."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setitem(FAMILIES, "pooled", FamilyEntry("pooled:Pooled", "Train a mean of word vectors."))


@pytest.fixture
def articles(tmp_path):
    path = tmp_path / "articles.jsonl"
    records = []
    for title in DISEASES * 5:
        sections = [
            {"heading": "Symptoms", "text": f"{title} is often a rash with fever and pain in the night."},
            {"heading": "Treatment", "text": f"For {title} there is rest, and tablets or drops for some days."},
        ]
        records.append({"id": f"{title} {len(records)}", "title": title, "abstract": "", "sections": sections})
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_family_of_one_file_is_trained_evaluated_and_searched_with(
    run, articles, registered, tmp_path, monkeypatch, capsys
):
    options = ("--device", "cpu", "--word-dimensions", "24", "--views", "title=1", "--short", "0", "--seed", "3")
    folder = tmp_path / "pooled-model"
    result = run("pooled", articles, "-o", folder, *options)
    assert result.code == 0, result.err
    assert "ranker of word vectors, step 1 of " in result.err
    card = json.loads((folder / "training.json").read_text())
    assert card["scores"]["first as torch, 32 bits"] == 1
    assert card["scores"]["R@1"] > 0.5  # of twelve passages or more
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["kind"], manifest["inputs"]) == ("ranker", "words")
    ranker = load_model(folder, "ranker")
    passages = ["Gout | Symptoms | a rash", "Gout | Treatment | rest", "Rabies | Treatment | drops"]
    scores = ranker.scores("treatment of gout", passages)
    assert max(range(3), key=scores.__getitem__) == 1

    with Library(tmp_path / "library", encoder="none", ranker=folder) as library:
        library.add([Document(title, f"{title}: {text}", title) for title in DISEASES[:4] for text in ("rest helps.",)])
        actual = library.search("gout rest")
        assert actual[0].document == "Gout"
    for arguments in (
        ["search", tmp_path / "library", "gout rest", "--ranker", folder, "--json"],
        ["evaluate", "samples", "--model", f"bm25>{folder}", "--json"],
        ["evaluate", "notes", "--data", articles, "--model", folder, "--model", f"bm25>{folder}", "--json"],
    ):
        monkeypatch.setattr(sys, "argv", ["capr", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            app()
        printed = capsys.readouterr()
        assert not left.value.code, printed.err
        lines = [json.loads(line) for line in printed.out.splitlines()]
        if arguments[0] == "search":
            assert lines[0]["hits"][0]["document"] == "Gout"
        else:
            models = {arguments[place + 1] for place, name in enumerate(arguments) if name == "--model"}
            assert {line["model"] for line in lines} == {str(model) for model in models}


def test_a_network_starts_with_the_word_vectors(registered, world, tmp_path):
    (tmp_path / "glove.txt").write_text("gout 1 2 3\nrabies 4 5 6\n")
    objective = family("pooled")(vectors=str(tmp_path / "glove.txt")).objective(world, "cpu")
    table = objective.model.embedding.weight.detach()
    vectors = dict(zip(objective.inputs.vocabulary, table[2:].tolist(), strict=True))
    assert vectors["gout"] == [1, 2, 3]
    assert vectors["rabies"] == [4, 5, 6]
    assert vectors["fever"] == [0, 0, 0]
    assert not table[:2].any()


def test_the_same_seed_trains_the_same_words(registered, world, tmp_path):
    weights = []
    for name in ("one", "two"):
        schedule = Schedule(epochs=2, batch=8, learning_rate=1e-2, device="cpu")
        train(world, family("pooled")(size=8, validation=0.3), schedule, tmp_path / name, onnx=False)
        weights.append(torch.load(tmp_path / name / "torch" / "network.pt"))
    assert torch.equal(weights[0]["embedding.weight"], weights[1]["embedding.weight"])


def test_a_network_may_score_the_sentences_of_a_passage_too(registered, world, tmp_path):
    import pooled

    class Network(pooled.PooledNetwork):
        def forward(self, query_ids, passage_ids, sentence_numbers):
            # (pairs, 4 sentences, words): which words are in each of the first four sentences
            inside = (sentence_numbers[:, None] == torch.arange(1, 5)[None, :, None]).float()
            words = self.embedding(passage_ids)  # (pairs, words, size)
            means = inside @ words / inside.sum(-1, keepdim=True).clamp(min=1)  # (pairs, 4, size)
            query = self._mean(query_ids)  # (pairs, size)
            return super().forward(query_ids, passage_ids), (means * query[:, None]).sum(-1)

    class Sentences(pooled.Pooled):
        def network(self, vectors):
            return Network(vectors, self.temperature)

    schedule = Schedule(epochs=6, batch=8, learning_rate=1e-2, patience=0, device="cpu")
    train(world, Sentences(size=16, validation=0.3), schedule, tmp_path)
    text = "rash and fever. gout rest."
    candidate = Candidate(text, (Span(0, 15), Span(16, 26)))
    actual = load_model(tmp_path, "ranker").read("gout", [candidate, Candidate("gout")])
    assert len(actual.passages) == 2
    assert [len(scores) for scores in actual.sentences] == [2, 0]
    assert actual.sentences[0][1] > actual.sentences[0][0]


def test_a_family_that_is_not_there_is_named():
    with pytest.raises(CaprError, match=r"there is no family 'unknown' of models. Fix: use bi, poly, late, cross"):
        family("unknown")


def test_the_list_of_families_needs_no_torch():
    program = "import sys; sys.modules['torch'] = None; sys.argv = ['capr', 'train', '--help']; from capr.cli import app; app()"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    for name, entry in FAMILIES.items():
        assert name in result.stdout
        assert entry.help.split()[-1] in result.stdout


def test_without_torch_a_command_says_what_to_install():
    program = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['capr', 'train', 'bi', 'a', '--base', 'b', '-o', 'c']; "
        "from capr.cli import app; app()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "Error: training needs torch, which is not installed. Fix: pip install 'capr[train]'." in result.stderr


@pytest.mark.parametrize("name", ["tagger", "cdv"])
def test_a_model_for_one_process_rejects_several(run, tmp_path, monkeypatch, name):
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = run(name, tmp_path, "-o", tmp_path / "out")
    assert result.code == 2
    assert "only one process can train such a model. Fix: start it without torchrun." in result.err
    assert not (tmp_path / "out").exists()
