"""Notes, an encoder and a ranker for the tests of libraries."""

import re
import zlib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

from capr.documents import Document
from capr.runtime.identity import EncoderIdentity

_spec = spec_from_file_location("reference", Path(__file__).parents[2] / "index" / "reference.py")
reference = module_from_spec(_spec)
_spec.loader.exec_module(reference)
NOTES = [
    Document("a", "PLAN: Start aspirin after the heart attack.\n\nDIET: Tea and bread.", "Note", {"patient": "p1"}),
    Document("b", "PLAN: No fever today. Stop aspirin.", "Note", {"patient": "p2", "date": "2023-05-01"}),
    Document("c", "FAMILY HISTORY: Father had fever.", "Letter", {"patient": "p1", "date": "2024-01-01"}),
    Document("d", "PLAN: Fever of 39 C since Monday.", "Letter", {"patient": "p3", "date": "2023-06-30"}),
]


class WordEncoder:
    """Encodes a text as the sum of a random vector for each word, and records its inputs."""

    def __init__(self, name="words", dimensions=32, folder="/models/words"):
        self.identity = EncoderIdentity(name, f"{zlib.crc32(name.encode()):08x}" * 4, dimensions, folder)
        self.read = []

    def passages(self, texts):
        self.read += texts
        return np.array([self.query(text) for text in texts], np.float32).reshape(-1, self.identity.dimensions)

    def query(self, text):
        total = np.full(self.identity.dimensions, 1e-3)
        for word in re.findall(r"\w+", text.lower()):
            total += np.random.default_rng(zlib.crc32(word.encode())).normal(size=len(total))
        return (total / np.linalg.norm(total)).astype(np.float32)


def ids(results):
    return [hit.document for hit in results]
