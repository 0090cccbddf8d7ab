"""Shutting down while the models still load."""

import threading

from served import Client

from capr.search import Library
from capr.serve.application import application
from capr.serve.settings import Settings


def test_shutdown_waits_for_the_model_that_is_loading_and_starts_no_other(folder):
    """Python aborts if it exits while another thread is inside a C++ library."""
    library = Library(folder, encoder="none", ranker="none")
    started, release, loaded = threading.Event(), threading.Event(), []

    def search(*arguments, **options):
        loaded.append("library")
        started.set()
        release.wait(10)

    library.search, library.suggest = search, lambda prefix: loaded.append("vocabulary")
    app = application(Settings(library=str(folder)), library)
    with Client(app):
        assert started.wait(10)
        threading.Timer(0.3, release.set).start()
    assert not [thread for thread in threading.enumerate() if thread.name == "capr-load"]
    assert loaded == ["library"]
