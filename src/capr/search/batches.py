"""The sizes of batches. An interruption loses at most one batch."""

ENCODED = 256  # passages, if they get vectors
PLAIN = 2000  # passages without vectors, and documents to add or remove
LOOKED_UP = 64  # documents to look up in the index at once
LONG = 1_000_000  # characters of documents to look up at once, so that few long documents wait in memory
SECONDS = 2.0  # the time for reading or preparing a batch, after which it is complete
