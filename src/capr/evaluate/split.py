"""Which documents a model is tested on: a share that depends on nothing but their ids."""

from __future__ import annotations

import hashlib

TEST = 0.2


def is_test(id: str, share: float = TEST) -> bool:
    """Whether a document belongs to the part that is tested on, and `capr train --part train` leaves out.

    >>> [id for id in ("Gout", "Asthma", "Stroke", "Hives", "Rabies") if is_test(id)]
    ['Stroke']
    """
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:6]) / 256**6 < share
