"""The protocols that `capr evaluate` knows. To add one, write its file and add a line to `PROTOCOLS`."""

from __future__ import annotations

from capr import registry
from capr.evaluate.protocol import Protocol

PROTOCOLS = {  # `module:Class`, by the name of the command
    "medquad": "capr.evaluate.medquad:MedQuad",
    "wikisection": "capr.evaluate.wikisection:WikiSection",
    "notes": "capr.evaluate.notes:Notes",
    "beir": "capr.evaluate.beir:Beir",
    "samples": "capr.evaluate.through_library:Samples",
    "passages": "capr.evaluate.passages:Passages",
}


def protocol(name: str) -> type[Protocol]:
    """Return the class of a protocol."""
    protocol_class: type[Protocol] = registry.load(PROTOCOLS[name])
    return protocol_class
