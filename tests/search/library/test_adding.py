"""Adding documents to a library, and removing them; problems with documents."""

import pytest
from notes import NOTES, WordEncoder, ids

from capr.documents import CaprError, Document
from capr.index import Filters
from capr.search import batches


def counts(added):
    return added.added, added.replaced, added.unchanged, added.passages, added.encoded


def test_documents_are_stored_unchanged(library, opened):
    assert [library.document(note.id) for note in NOTES] == NOTES
    assert list(opened().documents()) == NOTES
    with pytest.raises(CaprError, match=r"no document 'z'.*Fix: "):
        library.document("z")


def test_unchanged_documents_are_not_added_again(opened):
    library = opened()
    assert counts(library.add(NOTES)) == (4, 0, 0, 5, 0)
    assert counts(library.add(NOTES)) == (0, 0, 4, 0, 0)
    assert counts(library.add(NOTES[0])) == (0, 0, 1, 0, 0)


def test_files_and_folders_can_be_added(opened, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "n1.txt").write_text("PLAN: Rest.")
    (folder / "n2.txt").write_text("PLAN: Tea.")
    single = tmp_path / "single.txt"
    single.write_text("PLAN: Zebra.")
    library = opened()
    assert library.add([single, NOTES[1]]).added == 2
    assert library.add(str(folder)).added == 2
    assert ids(library.search("tea")) == ["n2.txt"]
    assert ids(library.search("zebra")) == ["single.txt"]


def test_an_unreadable_record_is_a_problem(opened, tmp_path):
    file = tmp_path / "notes.jsonl"
    file.write_text('{"id": "n1", "text": "Rest."}\n{"id": "n2", "te\n')
    reported = []
    added = opened().add(file, on_problem=reported.append)
    assert added.added == 1
    assert [problem.file for problem in added.problems] == [str(file)]
    assert reported == added.problems


def test_interrupted_adding_continues(opened, monkeypatch):
    monkeypatch.setattr(batches, "ENCODED", 2)
    encoder = WordEncoder()

    class PowerCutError(Exception):
        pass

    def fail(committed):
        if "b" in committed:
            raise PowerCutError

    documents = [
        Document(id, f"PLAN: {word} and rest.") for id, word in zip("abcd", ["tea", "ale", "rum", "gin"], strict=True)
    ]
    with pytest.raises(PowerCutError):
        opened(encoder=encoder).add(documents, on_commit=fail)
    library = opened(encoder=encoder)
    assert [document.id for document in library.documents()] == ["a", "b"]
    assert counts(library.add(documents)) == (2, 0, 2, 2, 2)
    assert list(library.documents()) == documents
    assert len(encoder.read) == len(set(encoder.read)) == 4
    assert ids(library.search("rest", mode="lexical")) == ["a", "b", "c", "d"]
    assert library.stats().vectors == 4
    assert library.verify().problems == []


def test_adding_continues_after_its_source_fails(opened):
    def source():
        yield NOTES[0]
        yield NOTES[1]
        raise OSError("gone")

    library = opened()
    with pytest.raises(OSError, match="gone"):
        library.add(source())
    added = library.add(NOTES)
    assert added.added + added.unchanged == 4
    assert list(library.documents()) == NOTES


@pytest.mark.parametrize(
    ("looked_up", "long", "lookups"),
    [
        (64, 1_000_000, [["a", "b", "c", "d"]]),
        (3, 1_000_000, [["a"], ["b", "c", "d"]]),
        (64, 1, [[id] for id in "abcd"]),
    ],
)
def test_documents_are_looked_up_in_groups(opened, monkeypatch, looked_up, long, lookups):
    monkeypatch.setattr(batches, "LOOKED_UP", looked_up)
    monkeypatch.setattr(batches, "LONG", long)
    monkeypatch.setattr(batches, "SECONDS", 1e9)
    library = opened()
    library.add(NOTES[:2])
    calls = []
    digests = library.index.digests
    monkeypatch.setattr(library.index, "digests", lambda ids: calls.append(list(ids)) or digests(ids))
    invalid = [Document(" ", "nothing"), Document(5, 5)]
    added = library.add([*NOTES[:1], *invalid, *NOTES[1:]])
    assert (counts(added), len(added.problems)) == ((2, 0, 2, 2, 0), 2)
    assert [ids for ids in calls if ids] == lookups


@pytest.mark.parametrize("plain", [1, 2, 100])
@pytest.mark.parametrize("looked_up", [1, 3, 64])
def test_a_repeated_id_is_recognised_before_and_after_its_commit(opened, monkeypatch, plain, looked_up):
    monkeypatch.setattr(batches, "PLAIN", plain)
    monkeypatch.setattr(batches, "LOOKED_UP", looked_up)
    first, other = Document("a", "PLAN: Rest."), Document("a", "PLAN: Tea.")
    documents = [first, first, Document("b", "PLAN: Ale."), first, other]
    library = opened()
    added = library.add(documents)
    assert (counts(added)[:3], len(added.problems)) == ((2, 0, 2), 1)
    assert library.document("a") == first
    assert counts(library.add([other, *documents], replace=True))[:3] == (0, 3, 3)
    assert library.document("a") == other


def test_on_commit_gets_the_committed_ids(opened, monkeypatch):
    monkeypatch.setattr(batches, "PLAIN", 2)
    commits = []
    opened().add(NOTES, on_commit=commits.append)
    assert commits == [["a"], ["b", "c"], ["d"]]


def test_identical_documents_are_not_encoded_again(opened):
    encoder = WordEncoder()
    library = opened(encoder=encoder)
    library.add(Document("a", "PLAN: Rest.", "Note", {"patient": "p1"}))
    added = library.add([Document(id, "PLAN: Rest.", "Note", {"patient": id}) for id in "bcd"])
    assert (added.added, added.encoded, len(encoder.read)) == (3, 0, 1)
    assert library.stats().vectors == 4
    assert sorted(ids(library.search("rest", mode="dense"))) == ["a", "b", "c", "d"]


def test_identical_documents_of_one_call_are_encoded_once(opened):
    encoder = WordEncoder()
    added = opened(encoder=encoder).add([Document(id, "PLAN: Rest.") for id in "abc"])
    assert (added.added, added.encoded, len(encoder.read)) == (3, 1, 1)


def test_a_document_with_another_title_is_encoded(opened):
    encoder = WordEncoder()
    library = opened(encoder=encoder)
    library.add([Document("a", "PLAN: Rest and drink.", "Note"), Document("b", "PLAN: Rest and drink.", "Letter")])
    assert encoder.read == ["Note | PLAN: Rest and drink.", "Letter | PLAN: Rest and drink."]


def test_other_contents_under_a_known_id_are_a_problem(library):
    reported = []
    added = library.add([Document("a", "PLAN: Other."), Document("e", "New.")], on_problem=reported.append)
    assert counts(added)[:3] == (1, 0, 0)
    (problem,) = added.problems
    assert reported == [problem]
    assert ("'a'" in problem.fact, "--replace" in problem.fix, problem.record) == (True, True, "a")
    assert library.document("a") == NOTES[0]


def test_other_contents_within_one_call_are_a_problem_too(opened):
    library = opened()
    added = library.add([Document("a", "One."), Document("a", "Two."), Document("a", "One.")])
    assert (added.added, added.unchanged, len(added.problems)) == (1, 1, 1)
    assert library.document("a").text == "One."


def test_replace_exchanges_a_document(encoded):
    added = encoded.add([Document("a", "PLAN: Zebra."), NOTES[1]], replace=True)
    assert counts(added) == (0, 1, 1, 1, 1)
    assert encoded.document("a").text == "PLAN: Zebra."
    assert ids(encoded.search("aspirin", mode="lexical")) == ["b"]
    assert ids(encoded.search("zebra"))[0] == "a"
    assert encoded.verify().problems == []


def test_a_change_of_metadata_is_a_change(encoded):
    moved = Document("a", NOTES[0].text, "Note", {"patient": "p9"})
    added = encoded.add(moved, replace=True)
    assert (added.replaced, added.encoded) == (1, 0)
    assert ids(encoded.search("aspirin", filters="patient=p9")) == ["a", "a"]
    assert encoded.document("a") == moved


@pytest.mark.parametrize("document", [Document("", "Text."), Document("  ", "Text."), Document("a", "half \ud83d")])
def test_an_invalid_document_is_a_problem(opened, document):
    library = opened()
    added = library.add([document, NOTES[1]])
    assert (added.added, len(added.problems)) == (1, 1)
    assert added.problems[0].fix
    assert library.stats().documents == 1


def test_half_a_surrogate_pair_in_the_metadata_is_a_problem(opened):
    added = opened().add([Document("a", "Text.", "", {"ward": "half \ud83d"}), NOTES[1]])
    assert (added.added, len(added.problems)) == (1, 1)


def test_an_empty_document_is_stored(opened):
    library = opened(encoder=WordEncoder())
    assert counts(library.add([Document("a", ""), Document("b", " \n")])) == (2, 0, 0, 0, 0)
    assert library.document("b").text == " \n"
    assert library.verify().problems == []
    assert len(library.search("anything")) == 0


def test_removed_documents_are_not_found(encoded, opened):
    reader = opened(encoder=WordEncoder())
    assert "a" in ids(reader.search("aspirin"))
    assert encoded.remove("a") == 1
    for library in (reader, encoded):
        for mode in ("lexical", "dense", "hybrid"):
            assert "a" not in ids(library.search("aspirin", mode=mode))
    assert encoded.remove(["a", "b"]) == 1
    assert encoded.stats().documents == 2
    assert encoded.verify().problems == []


def test_documents_can_be_removed_by_filters(library):
    assert library.remove(filters={"patient": "p1"}) == 2
    assert [document.id for document in library.documents()] == ["b", "d"]
    with pytest.raises(CaprError, match="without"):
        library.remove(filters={"without": "negated"})
    with pytest.raises(CaprError, match="without"):
        library.remove(filters=Filters(without=frozenset({"negated"})))


@pytest.mark.parametrize("value", [["x", "Y"], [("a", "b")], {"a": 1}, 1.5, True, None, float("inf"), {"z"}, ""])
def test_nothing_remains_of_a_removed_document(opened, value):
    library = opened()
    document = Document("a", "PLAN: Fever.", "", {"key": value})
    assert library.add(document).added == 1
    assert library.add(document).unchanged == 1
    assert library.verify().problems == []
    library.remove("a")
    assert library.verify().problems == []
    assert library.stats().fields == {}
