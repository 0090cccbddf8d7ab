"""Models behind one interface: what their names mean, and what they give."""

from dataclasses import replace

import numpy as np
import pytest

from capr.documents import CaprError
from capr.evaluate import scorers
from capr.evaluate.measures import write_run
from capr.evaluate.scorers import (
    EncoderScorer,
    Fused,
    RankerScorer,
    Reranked,
    RunScorer,
    TermScorer,
    load,
    ranked,
    term_query,
)  # fmt: skip
from capr.evaluate.task import Asked, Task
from capr.evaluate.terms import Terms
from capr.index import OnnxEncoder
from capr.search import OnnxRanker
from capr.search.rerank import OnnxPoly


def silent(done, total):
    pass


class Given:
    """A scorer whose run is given."""

    def __init__(self, run):
        self._run = run

    def run(self, task, form, progress):
        return {query: dict(scores) for query, scores in self._run.items()}


@pytest.fixture
def alone():
    """One query over four passages in an order that is neither that of the scores nor of the letters."""
    asked = [Asked("1", "gout", "treatment", "", frozenset("a"), tuple("abcd"))]
    return Task("t", {"d": "d", "b": "b", "a": "a", "c": "c"}, asked)


def test_names_of_baselines():
    for name, weighting, top in (("bm25", "bm25", False), ("tfidf", "tfidf", False), ("bm25-top", "bm25", True)):
        found = load(name)
        assert isinstance(found, TermScorer)
        assert (found.weighting, found.top) == (weighting, top)


def test_names_of_folders(tiny_encoder, tiny_ranker, tiny_poly):
    assert isinstance(load(str(tiny_encoder)), EncoderScorer)
    assert isinstance(load(str(tiny_ranker)).ranker, OnnxRanker)
    assert isinstance(load(str(tiny_poly)).ranker, OnnxPoly)


def test_names_of_combinations(tiny_encoder, tiny_ranker):
    fused = load(f"bm25+{tiny_encoder}")
    assert isinstance(fused, Fused)
    assert [type(part) for part in fused.parts] == [TermScorer, EncoderScorer]
    again = load(f"bm25+{tiny_encoder}>{tiny_ranker}")
    assert isinstance(again, Reranked)
    assert isinstance(again.first, Fused)
    assert isinstance(again.ranker, RankerScorer)


@pytest.mark.parametrize(
    "name", ["bm26", "no/such/folder", "bm25+bm26", "bm25>bm26", "bm25>bm25", "bm26>bm25", "", "a>"]
)
def test_unknown_names_are_told(name):
    with pytest.raises(CaprError, match="Fix: "):
        load(name)


def test_only_a_ranker_can_come_last(tiny_encoder, tiny_ranker):
    for name in (f"bm25>{tiny_encoder}", f"bm25>{tiny_ranker}+bm25"):
        with pytest.raises(CaprError, match=r"cannot put passages in order\. Fix: "):
            load(name)


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(CaprError, match=r"no model\.onnx"):
        load(str(tmp_path))


def test_terms_are_asked_as_cdv_asks():
    asked = Asked("1", "Charcot-Marie/Tooth", "signs: early", "What is it - really?", frozenset("a"))
    assert term_query(asked, "tuple") == "Charcot Marie Tooth signs  early"
    assert term_query(asked, "question") == "What is it   really?"
    assert term_query(replace(asked, question=""), "question") == "Charcot Marie Tooth signs  early"


def test_terms_have_the_statistics_of_all_passages(toy):
    run = TermScorer("bm25").run(toy, "tuple", silent)
    everything = dict(zip(toy.passages, Terms(toy.passages).scores("gout treatment"), strict=True))
    assert run["1"] == pytest.approx({id: everything[id] for id in "cabd"})
    assert run["2"].keys() == {*"eda"}


def test_terms_without_candidates_rank_everything(toy):
    task = replace(toy, asked=[replace(asked, candidates=()) for asked in toy.asked])
    assert TermScorer("tfidf").run(task, "tuple", silent)["1"].keys() == toy.passages.keys()


def test_only_the_top_of_all_passages_is_kept(monkeypatch, toy):
    assert TermScorer("bm25", top=True).run(toy, "tuple", silent)["1"].keys() == {*"abc"}
    monkeypatch.setattr(scorers, "TOP", 1)
    first = Terms(toy.passages).best("gout treatment", 1)
    assert [*TermScorer("bm25", top=True).run(toy, "tuple", silent)["1"]] == first


def test_an_encoder_gives_its_dot_products(toy, tiny_encoder):
    encoder = OnnxEncoder(tiny_encoder)
    for form in ("tuple", "question"):
        run = EncoderScorer(encoder).run(toy, form, silent)
        for asked in toy.asked:
            query = encoder.query(asked.query(form).wording)
            expected = {id: float(encoder.passages([toy.passages[id]])[0] @ query) for id in asked.candidates}
            assert run[asked.id] == pytest.approx(expected, abs=1e-5)


def test_an_encoder_ranks_everything_if_one_query_has_no_candidates(tiny_encoder, toy):
    task = replace(toy, asked=[toy.asked[0], replace(toy.asked[1], candidates=())])
    run = load(str(tiny_encoder)).run(task, "tuple", silent)
    assert (run["1"].keys(), run["2"].keys()) == ({*"abcd"}, {*"abcde"})


def test_more_passages_than_one_batch_are_scored_right(tiny_encoder):
    passages = {f"p{i}": f"{'word ' * (i % 7)}{i}" for i in range(150)}
    task = Task("t", passages, [Asked("1", "gout", "", "", frozenset(["p1"]))])
    encoder = OnnxEncoder(tiny_encoder)
    expected = encoder.passages(list(passages.values())) @ encoder.query("gout")
    assert np.allclose(list(EncoderScorer(encoder).run(task, "tuple", silent)["1"].values()), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["ranker", "poly"])
def test_rankers_give_the_scores_of_direct_calls(toy, request, kind):
    ranker = load(str(request.getfixturevalue(f"tiny_{kind}"))).ranker
    run = RankerScorer(ranker).run(toy, "question", silent)
    for asked in toy.asked:
        texts = [toy.passages[id] for id in asked.candidates]
        expected = ranker.scores(asked.query("question").wording, texts)
        assert run[asked.id] == pytest.approx(dict(zip(asked.candidates, expected, strict=True)), abs=1e-4)


def test_fusion_is_by_scores_if_nobody_says(alone):
    one, other = Given({"1": {"a": 9.0, "b": 5.0, "c": 1.0}}), Given({"1": {"c": 0.3, "a": 0.2}})
    found = Fused([one, other]).run(alone, "tuple", silent)
    assert found["1"] == pytest.approx({"a": 0.5, "b": 0.25, "c": 0.5})


def test_fusion_by_reciprocal_rank(alone):
    one, other = Given({"1": {"a": 9.0, "b": 5.0, "c": 1.0}}), Given({"1": {"c": 0.3, "a": 0.2}})
    found = Fused([one, other], "reciprocal").run(alone, "tuple", silent)
    assert found["1"] == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61})


def test_ties_in_a_fusion_are_broken_by_the_order_of_the_passages(alone):
    found = Fused([Given({"1": dict.fromkeys("abcd", 1.0)})], "reciprocal").run(alone, "tuple", silent)
    assert found["1"] == pytest.approx({"d": 1 / 61, "b": 1 / 62, "a": 1 / 63, "c": 1 / 64})


class ByLetter:
    """Ranks by the number of the text's first letter."""

    def __init__(self):
        self.read = []

    def scores(self, query, passages):
        self.read.append(passages)
        return [float(ord(text[0])) for text in passages]


def test_only_the_best_are_ranked_again_and_the_others_stay_behind(alone, monkeypatch):
    monkeypatch.setattr(scorers, "RERANKED", 2)
    ranker = ByLetter()
    first = Given({"1": {"a": 3.0, "b": 4.0, "c": 1.0, "d": 2.0}})
    found = Reranked(first, RankerScorer(ranker)).run(alone, "tuple", silent)["1"]
    assert ranker.read == [["b", "a"]]
    assert ranked(found, {id: place for place, id in enumerate(alone.passages)}) == ["b", "a", "d", "c"]


def test_ties_of_the_first_stage_are_ranked_again_in_the_order_of_the_passages(alone, monkeypatch):
    monkeypatch.setattr(scorers, "RERANKED", 2)
    ranker = ByLetter()
    Reranked(Given({"1": dict.fromkeys("abcd", 1.0)}), RankerScorer(ranker)).run(alone, "tuple", silent)
    assert ranker.read == [["d", "b"]]


def test_what_the_first_stage_does_not_find_is_not_ranked(alone):
    assert Reranked(Given({"1": {}}), RankerScorer(ByLetter())).run(alone, "tuple", silent) == {"1": {}}


def test_a_chain_of_real_models_has_every_candidate(toy, tiny_encoder, tiny_ranker):
    run = load(f"bm25+{tiny_encoder}>{tiny_ranker}").run(toy, "tuple", silent)
    assert {query: {*scores} for query, scores in run.items()} == {a.id: {*a.candidates} for a in toy.asked}


@pytest.mark.parametrize("kind", ["bm25", "encoder", "ranker"])
def test_progress_ends_at_its_total(toy, kind, request):
    told = []
    name = kind if kind == "bm25" else str(request.getfixturevalue(f"tiny_{kind}"))
    load(name).run(toy, "tuple", lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_ranking_made_elsewhere_ranks_as_the_model_that_made_it(toy, tiny_encoder, tiny_ranker, tmp_path):
    places = {id: place for place, id in enumerate(toy.passages)}
    runs = {}
    for name, folder in (("encoder", tiny_encoder), ("ranker", tiny_ranker)):
        runs[name] = load(str(folder)).run(toy, "tuple", silent)
        write_run(runs[name], toy, tmp_path / f"{name}.run", name)
    first, last = (str(tmp_path / f"{name}.run") for name in runs)
    for models, elsewhere in (
        (str(tiny_encoder), first),
        (f"bm25+{tiny_encoder}", f"bm25+{first}"),
        (f"bm25+{tiny_encoder}>{tiny_ranker}", f"bm25+{first}>{last}"),
    ):
        one, other = (load(name).run(toy, "tuple", silent) for name in (models, elsewhere))
        for asked in toy.asked:
            assert ranked(one[asked.id], places) == ranked(other[asked.id], places)


def test_what_a_ranking_made_elsewhere_does_not_have_comes_last(toy, tmp_path):
    path = tmp_path / "some.run"
    path.write_text("1 Q0 b 1 0.5 some\n1 Q0 d 2 0.4 some\n")
    some = replace(toy, asked=toy.asked[:1])
    first = Given({"1": {"c": 0.3, "d": 0.2, "b": 0.1}})
    found = Reranked(first, RunScorer(path)).run(some, "tuple", silent)["1"]
    assert sorted(found, key=lambda id: -found[id]) == ["b", "d", "c"]
    without = Reranked(Given({"1": {"d": 0.2, "b": 0.1}}), RunScorer(path)).run(some, "tuple", silent)["1"]
    assert {id: found[id] for id in "bd"} == without  # it changes nothing for those that the ranking has


def test_a_model_that_does_not_ship_is_not_named_as_the_remedy():
    with pytest.raises(CaprError, match=r"there is no model ranker\. Fix: use bm25, .*") as told:
        load("ranker")
    assert "encoder" not in str(told.value)


def test_a_ranking_that_is_not_there_is_told(tmp_path):
    with pytest.raises(CaprError, match=r"there is no .*none\.run\. Fix: name a run"):
        load(str(tmp_path / "none.run"))
