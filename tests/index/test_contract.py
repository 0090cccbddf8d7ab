"""The contract of engines, for the built-in engine and for the reference engine in memory."""

import pytest

from capr.index.embedded import queries, views
from capr.testing import EngineContract, ReferenceIndex
from capr.testing.filtering import Filtering
from capr.testing.meaning import Meaning


class TestEmbedded(EngineContract):
    @pytest.fixture
    def index(self, embedded, monkeypatch):
        monkeypatch.setattr(views, "LOCK_WAIT", 0)
        return embedded


class TestReference(EngineContract):
    @pytest.fixture
    def index(self):
        return ReferenceIndex()


class TestManyPassagesMatchAClause(Meaning):
    """Dense search, when more passages contain a word of the query than the engine lists before the search."""

    @pytest.fixture
    def index(self, embedded, monkeypatch):
        monkeypatch.setattr(queries, "MAX_LISTED", 1)
        return embedded


@pytest.mark.parametrize("share", [0.0, 2.0])
class TestFiltersInAndAfterTheWordIndex(Filtering):
    """The word index always applies the filters, or never."""

    @pytest.fixture
    def index(self, embedded, monkeypatch, share):
        monkeypatch.setattr(queries, "NARROW", share)
        return embedded


def test_the_contract_has_filters_above_and_below_the_narrow_share():
    """Six of 26 or 606 passages pass, and three of 13 or 403."""
    cases = ((26, 6), (606, 6), (13, 3), (403, 3))
    assert [queries.NARROW * total > passing for total, passing in cases] == [False, True, False, True]
