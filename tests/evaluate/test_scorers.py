"""Models behind one interface: their names and their scores."""

from dataclasses import replace

import numpy as np
import pytest

from capr.documents import CaprError, Document, Span
from capr.evaluate import scorers
from capr.evaluate.measures import write_run
from capr.evaluate.scorers import (
    EncoderScorer,
    Fused,
    LateScorer,
    RankerScorer,
    Reranked,
    RunScorer,
    TermScorer,
    load,
    ranked,
    term_query,
)
from capr.evaluate.task import Task, TaskQuery
from capr.evaluate.term_baselines import Terms
from capr.runtime.encoder import OnnxEncoder
from capr.runtime.inputs import Candidate
from capr.runtime.late import maxsim
from capr.runtime.poly import OnnxPoly
from capr.runtime.ranker import OnnxRanker, RankerScores
from capr.search import Library
from capr.search.reranking import COMPARED, RERANKED_AFTER_LATE


def silent(done, total):
    pass


class FixedScorer:
    """A scorer that returns a fixed run."""

    def __init__(self, run):
        self._run = run

    def run(self, task, form, progress):
        return {query: dict(scores) for query, scores in self._run.items()}


@pytest.fixture
def shuffled():
    """One query over four passages, ordered neither by their letters nor by a score of the tests."""
    queries = [TaskQuery("1", "gout", "treatment", "", frozenset("a"), tuple("abcd"))]
    return Task("t", {"d": "d", "b": "b", "a": "a", "c": "c"}, queries)


def test_names_of_baselines():
    for name, weighting, top in (("bm25", "bm25", False), ("tfidf", "tfidf", False), ("bm25-top", "bm25", True)):
        scorer = load(name)
        assert isinstance(scorer, TermScorer)
        assert (scorer.weighting, scorer.top) == (weighting, top)


def test_names_of_folders(tiny_encoder, tiny_ranker, tiny_poly):
    assert isinstance(load(str(tiny_encoder)), EncoderScorer)
    assert isinstance(load(str(tiny_ranker)).ranker, OnnxRanker)
    assert isinstance(load(str(tiny_poly)).ranker, OnnxPoly)


def test_names_of_combinations(tiny_encoder, tiny_ranker):
    fused = load(f"bm25+{tiny_encoder}")
    assert isinstance(fused, Fused)
    assert [type(part) for part in fused.parts] == [TermScorer, EncoderScorer]
    chain = load(f"bm25+{tiny_encoder}>{tiny_ranker}")
    assert isinstance(chain, Reranked)
    assert isinstance(chain.first, Fused)
    assert isinstance(chain.reranker, RankerScorer)


@pytest.mark.parametrize(
    "name", ["bm26", "no/such/folder", "bm25+bm26", "bm25>bm26", "bm25>bm25", "bm26>bm25", "", "a>"]
)
def test_unknown_names_are_reported(name):
    with pytest.raises(CaprError, match="Fix: "):
        load(name)


@pytest.fixture
def built_in(tmp_path, monkeypatch):
    for name in ("encoder", "ranker"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CAPR_WEIGHTS", str(tmp_path))


@pytest.mark.usefixtures("built_in")
def test_the_nearest_name_is_suggested():
    names = "bm25, bm25-top, tfidf, tfidf-top, encoder, ranker, or the folder of a model"
    for name, nearest in (("bm52", "bm25"), ("tf-idf", "tfidf"), ("Encoder", "encoder")):
        with pytest.raises(CaprError) as caught:
            load(name)
        assert str(caught.value) == f"there is no model {name}. Did you mean {nearest}? Fix: use {names}."
    with pytest.raises(CaprError, match=r"there is no model no/such\. Fix: use bm25, "):
        load("no/such")


def test_only_a_ranker_can_come_last(tiny_encoder, tiny_ranker):
    for name in (f"bm25>{tiny_encoder}", f"bm25>{tiny_ranker}+bm25"):
        with pytest.raises(CaprError, match=r"cannot re-rank passages\. Fix: "):
            load(name)


def test_a_folder_without_a_model_is_reported(tmp_path):
    with pytest.raises(CaprError, match=r"is not a model: it has no manifest\.json\. Fix: "):
        load(str(tmp_path))


def test_term_queries_are_those_of_cdv():
    query = TaskQuery("1", "Charcot-Marie/Tooth", "signs: early", "What is it - really?", frozenset("a"))
    assert term_query(query, "tuple") == "Charcot Marie Tooth signs  early"
    assert term_query(query, "question") == "What is it   really?"
    assert term_query(replace(query, question=""), "question") == "Charcot Marie Tooth signs  early"


def test_terms_have_the_statistics_of_all_passages(toy):
    run = TermScorer("bm25").run(toy, "tuple", silent)
    scores = dict(zip(toy.passages, Terms(toy.passages).scores("gout treatment"), strict=True))
    assert run["1"] == pytest.approx({id: scores[id] for id in "cabd"})
    assert run["2"].keys() == {*"eda"}


def test_terms_without_candidates_rank_all_passages(toy):
    task = replace(toy, queries=[replace(query, candidates=()) for query in toy.queries])
    assert TermScorer("tfidf").run(task, "tuple", silent)["1"].keys() == toy.passages.keys()


def test_only_the_top_of_all_passages_is_kept(monkeypatch, toy):
    assert TermScorer("bm25", top=True).run(toy, "tuple", silent)["1"].keys() == {*"abc"}
    monkeypatch.setattr(scorers, "TOP", 1)
    first = Terms(toy.passages).best("gout treatment", 1)
    assert [*TermScorer("bm25", top=True).run(toy, "tuple", silent)["1"]] == first


def test_encoder_scores_are_dot_products(toy, tiny_encoder):
    encoder = OnnxEncoder(tiny_encoder)
    for form in ("tuple", "question"):
        run = EncoderScorer(encoder).run(toy, form, silent)
        for query in toy.queries:
            vector = encoder.query(query.query(form).wording)
            expected = {id: float(encoder.passages([toy.passages[id]])[0] @ vector) for id in query.candidates}
            assert run[query.id] == pytest.approx(expected, abs=1e-5)


def test_an_encoder_ranks_all_passages_for_a_query_without_candidates(tiny_encoder, toy):
    task = replace(toy, queries=[toy.queries[0], replace(toy.queries[1], candidates=())])
    run = load(str(tiny_encoder)).run(task, "tuple", silent)
    assert (run["1"].keys(), run["2"].keys()) == ({*"abcd"}, {*"abcde"})


def test_several_batches_of_passages(tiny_encoder):
    passages = {f"p{i}": f"{'word ' * (i % 7)}{i}" for i in range(150)}
    task = Task("t", passages, [TaskQuery("1", "gout", "", "", frozenset(["p1"]))])
    encoder = OnnxEncoder(tiny_encoder)
    expected = encoder.passages(list(passages.values())) @ encoder.query("gout")
    assert np.allclose(list(EncoderScorer(encoder).run(task, "tuple", silent)["1"].values()), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["ranker", "poly"])
def test_rankers_give_the_scores_of_direct_calls(toy, request, kind):
    ranker = load(str(request.getfixturevalue(f"tiny_{kind}"))).ranker
    run = RankerScorer(ranker).run(toy, "question", silent)
    for query in toy.queries:
        texts = [toy.passages[id] for id in query.candidates]
        expected = ranker.scores(query.query("question").wording, texts)
        assert run[query.id] == pytest.approx(dict(zip(query.candidates, expected, strict=True)), abs=1e-4)


def test_the_default_fusion_is_by_scores(shuffled):
    first, second = FixedScorer({"1": {"a": 9.0, "b": 5.0, "c": 1.0}}), FixedScorer({"1": {"c": 0.3, "a": 0.2}})
    run = Fused([first, second]).run(shuffled, "tuple", silent)
    assert run["1"] == pytest.approx({"a": 0.5, "b": 0.25, "c": 0.5})


def test_fusion_by_reciprocal_rank(shuffled):
    first, second = FixedScorer({"1": {"a": 9.0, "b": 5.0, "c": 1.0}}), FixedScorer({"1": {"c": 0.3, "a": 0.2}})
    run = Fused([first, second], "reciprocal").run(shuffled, "tuple", silent)
    assert run["1"] == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61})


def test_ties_in_a_fusion_keep_the_order_of_the_passages(shuffled):
    run = Fused([FixedScorer({"1": dict.fromkeys("abcd", 1.0)})], "reciprocal").run(shuffled, "tuple", silent)
    assert run["1"] == pytest.approx({"d": 1 / 61, "b": 1 / 62, "a": 1 / 63, "c": 1 / 64})


class ByLetter:
    """Ranks by the number of the text's first letter."""

    def __init__(self):
        self.read = []

    def scores(self, query, passages):
        self.read.append(passages)
        return [float(ord(text[0])) for text in passages]


def test_only_the_best_are_reranked_and_the_others_follow(shuffled, monkeypatch):
    monkeypatch.setattr(scorers, "RERANKED", 2)
    ranker = ByLetter()
    first = FixedScorer({"1": {"a": 3.0, "b": 4.0, "c": 1.0, "d": 2.0}})
    scores = Reranked(first, RankerScorer(ranker)).run(shuffled, "tuple", silent)["1"]
    assert ranker.read == [["b", "a"]]
    assert ranked(scores, {id: position for position, id in enumerate(shuffled.passages)}) == ["b", "a", "d", "c"]


def test_reranking_takes_ties_in_the_order_of_the_passages(shuffled, monkeypatch):
    monkeypatch.setattr(scorers, "RERANKED", 2)
    ranker = ByLetter()
    Reranked(FixedScorer({"1": dict.fromkeys("abcd", 1.0)}), RankerScorer(ranker)).run(shuffled, "tuple", silent)
    assert ranker.read == [["d", "b"]]


def test_late_interaction_scores_by_maxsim(toy, tiny_late):
    encoder = OnnxEncoder(tiny_late)
    run = LateScorer(encoder).rerank(toy, "tuple", {query.id: query.candidates for query in toy.queries}, silent)
    for query in toy.queries:
        pieces = encoder.query_with_pieces(query.query("tuple").wording)[1]
        codes = encoder.passages_with_pieces([toy.passages[id] for id in query.candidates])[1]
        expected = dict(zip(query.candidates, maxsim(pieces, codes).tolist(), strict=True))
        assert run[query.id] == pytest.approx(expected, abs=1e-6)


def test_a_whole_search_ranks_as_a_library_does(toy, tiny_late, tiny_ranker, tmp_path):
    task = replace(toy, queries=[replace(query, candidates=()) for query in toy.queries])
    with Library(tmp_path / "library", encoder=tiny_late, ranker=tiny_ranker) as library:
        library.add([Document(id, text) for id, text in task.passages.items()])
        for name, rerank in ((f"{tiny_late}>{tiny_late}", False), (f"{tiny_late}>{tiny_late}>{tiny_ranker}", True)):
            run = load(name).run(task, "question", silent)
            for query in task.queries:
                hits = library.search(query.query("question").wording, 10, mode="dense", rerank=rerank)
                scores = {hit.document: hit.score for hit in hits}
                assert run[query.id] == pytest.approx(scores, abs=0.02)  # a library stores vectors in 8 bits


def test_a_ranker_reads_fewer_passages_after_late_interaction(tiny_late, tiny_ranker):
    stages = load(f"bm25+{tiny_late}>{tiny_late}>{tiny_ranker}")
    assert (stages.stage, stages.count) == ("rerank", RERANKED_AFTER_LATE)
    assert (stages.first.stage, stages.first.count) == ("late", COMPARED)
    assert load(f"bm25+{tiny_late}>{tiny_ranker}").count == scorers.RERANKED


def test_reranking_adds_no_passages(shuffled):
    assert Reranked(FixedScorer({"1": {}}), RankerScorer(ByLetter())).run(shuffled, "tuple", silent) == {"1": {}}


def test_a_chain_of_real_models_has_every_candidate(toy, tiny_encoder, tiny_ranker):
    run = load(f"bm25+{tiny_encoder}>{tiny_ranker}").run(toy, "tuple", silent)
    assert {query: {*scores} for query, scores in run.items()} == {a.id: {*a.candidates} for a in toy.queries}


@pytest.mark.parametrize("kind", ["bm25", "encoder", "ranker"])
def test_progress_ends_at_its_total(toy, kind, request):
    calls = []
    name = kind if kind == "bm25" else str(request.getfixturevalue(f"tiny_{kind}"))
    load(name).run(toy, "tuple", lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1]
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_a_run_file_ranks_as_its_model(toy, tiny_encoder, tiny_ranker, tmp_path):
    positions = {id: position for position, id in enumerate(toy.passages)}
    runs = {}
    for name, folder in (("encoder", tiny_encoder), ("ranker", tiny_ranker)):
        runs[name] = load(str(folder)).run(toy, "tuple", silent)
        write_run(runs[name], toy, tmp_path / f"{name}.run", name)
    first, last = (str(tmp_path / f"{name}.run") for name in runs)
    for models, files in (
        (str(tiny_encoder), first),
        (f"bm25+{tiny_encoder}", f"bm25+{first}"),
        (f"bm25+{tiny_encoder}>{tiny_ranker}", f"bm25+{first}>{last}"),
    ):
        model_run, file_run = (load(name).run(toy, "tuple", silent) for name in (models, files))
        for query in toy.queries:
            assert ranked(model_run[query.id], positions) == ranked(file_run[query.id], positions)


def test_passages_that_a_run_file_lacks_come_last(toy, tmp_path):
    path = tmp_path / "some.run"
    path.write_text("1 Q0 b 1 0.5 some\n1 Q0 d 2 0.4 some\n")
    task = replace(toy, queries=toy.queries[:1])
    first = FixedScorer({"1": {"c": 0.3, "d": 0.2, "b": 0.1}})
    scores = Reranked(first, RunScorer(path)).run(task, "tuple", silent)["1"]
    assert sorted(scores, key=lambda id: -scores[id]) == ["b", "d", "c"]
    known_scores = Reranked(FixedScorer({"1": {"d": 0.2, "b": 0.1}}), RunScorer(path)).run(task, "tuple", silent)["1"]
    assert {id: scores[id] for id in "bd"} == known_scores  # the scores of the passages in the run file stay the same


def test_the_fix_does_not_name_missing_models():
    with pytest.raises(CaprError, match=r"there is no model ranker\. Fix: use bm25, .*") as caught:
        load("ranker")
    assert "encoder" not in str(caught.value)


def test_a_missing_run_file_is_reported(tmp_path):
    with pytest.raises(CaprError, match=r"there is no .*none\.run\. Fix: name a run"):
        load(str(tmp_path / "none.run"))


def test_a_ranker_ranks_sentences_if_it_scores_them():
    class Counts:
        """Scores by how often the first word of the query occurs."""

        def read(self, query, passages):
            word = query.split()[0].lower()
            parts = [[span.of(p.text).lower().count(word) for span in p.sentences] for p in passages]
            return RankerScores([float(sum(part)) for part in parts], [[float(n) for n in part] for part in parts])

        def scores(self, query, passages):
            return self.read(query, [Candidate(text) for text in passages]).passages

    sentences = {"a": (Span(0, 9), Span(10, 16)), "b": (Span(0, 6),)}
    queries = [TaskQuery("1", "", "", "fever today", frozenset("a"), ("a", "b"), sentences={"a": (Span(0, 9),)})]
    task = Task("t", {"a": "No fever. Cough.", "b": "Cough."}, queries, sentences=sentences)
    assert RankerScorer(Counts()).sentences(task, "question", silent) == {
        "1": {"a[0:9]": 1, "a[10:16]": 0, "b[0:6]": 0}
    }
    assert set(task.of_sentences().queries[0].candidates) == {"a[0:9]", "a[10:16]", "b[0:6]"}


def test_a_ranker_of_passages_ranks_no_sentences(tiny_ranker):
    task = Task("t", {"a": "No fever."}, [TaskQuery("1", "", "", "fever", frozenset("a"), ("a",))])
    assert RankerScorer(OnnxRanker(tiny_ranker)).sentences(task, "question", silent) is None
