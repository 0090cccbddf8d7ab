"""Which passages match a filter, while other threads change the library."""

import threading
from concurrent.futures import ThreadPoolExecutor

from capr import Document, Library
from capr.index import Filters
from capr.index.embedded.postings import Postings


class ChangingStore:
    """A store whose first reader of the documents waits, for a moment, until a second reader has read more of them."""

    def __init__(self, store):
        self._store, self._second, self._calls = store, threading.Event(), 0

    def extents(self, last):
        self._calls += 1
        if self._calls > 1:
            self._second.set()
            return self._store.extents(last)
        self._second.wait(0.5)
        return self._store.extents(last)[:1]

    def __getattr__(self, name):
        return getattr(self._store, name)


def test_threads_share_one_state_of_the_documents(tmp_path):
    with Library(tmp_path / "library", encoder="none", ranker="none") as library:
        library.add([Document(f"n{number}", "Gout.", "", {"patient": "A"}) for number in range(6)])
        store = library.index.store
        postings, changing = Postings(store), ChangingStore(store)
        with ThreadPoolExecutor(2) as threads:
            counts = [
                threads.submit(lambda: len(postings.documents(changing, Filters.of("patient=A")))) for _ in range(2)
            ]
        assert [count.result() for count in counts] == [1, 1]
