"""Cutting: a library remembers how it cuts documents into passages."""

import pytest
from reference import WordDiscourse

from capr.documents import CaprError, Document
from capr.segment import Cutting
from capr.text.digest import content, digest

LONG = Document("long", " ".join(f"Sentence {i} has five words." for i in range(100)), "Title")
SHORT = Document("short", "Fever.")


def test_the_default_cutting_does_not_change_digests():
    assert digest(SHORT).hex() == "21124547adcf82243ad278db3bed5ca9099005829724914c70ff4dc6cbf72d14"
    assert content(SHORT).hex() == "00876cee56dae367ff5d006570784571e18c231bf9a81bc61ad2dcf5399fed9b"
    assert digest(SHORT, Cutting().as_json()) == digest(SHORT)
    assert content(SHORT, Cutting().as_json()) == content(SHORT)


def test_another_cutting_changes_digests():
    cuttings = [Cutting(words).as_json() for words in (50, 100, 250)]
    assert len({digest(SHORT, cutting) for cutting in cuttings}) == 3
    assert len({content(SHORT, cutting) for cutting in cuttings}) == 3


def test_a_library_remembers_its_cutting(opened):
    opened(max_words=50).add(LONG)
    library = opened()
    assert len(library.passages("long")) == 10
    library.add(Document("later", LONG.text))
    assert len(library.passages("later")) == 10
    assert library.verify().problems == []


def test_documents_are_cut_again_when_they_are_added_again(opened):
    opened().add([LONG, SHORT])
    assert len(opened().passages("long")) == 2
    library = opened(max_words=50)
    added = library.add([LONG, SHORT])
    assert (added.added, added.replaced, added.unchanged, added.problems) == (0, 2, 0, [])
    assert len(library.passages("long")) == 10
    assert opened(max_words=50).add([LONG, SHORT]).unchanged == 2
    assert opened().add([LONG, SHORT]).unchanged == 2
    added = opened(max_words=250).add([LONG])
    assert (added.replaced, added.unchanged) == (1, 0)
    assert len(opened().passages("long")) == 2
    assert opened().verify().problems == []  # the documents have different cuttings


def test_other_contents_need_replace_in_spite_of_another_cutting(opened):
    opened().add(LONG)
    library = opened(max_words=50)
    (problem,) = library.add(Document("long", "Something else.")).problems
    assert "other contents" in str(problem)
    assert library.add(Document("long", "Something else."), replace=True).replaced == 1


def test_vectors_of_another_cutting_are_not_reused(opened):
    opened(discourse=WordDiscourse()).add(LONG)
    library = opened(discourse=WordDiscourse(), max_words=50)
    assert library.add(LONG).sentences == 100
    assert library.verify().problems == []
    assert len(library.scores("sentence", "long")) == 100


@pytest.mark.parametrize("words", [0, -1, 1.5, True, "250"])
def test_an_invalid_length_is_refused(opened, words):
    with pytest.raises(CaprError, match=r"cannot hold anything\. Fix: "):
        opened(max_words=words)
