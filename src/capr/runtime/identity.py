"""The identity of the model that made the vectors of a space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """The model that made the vectors of a space.

    Attributes:
        name: the name in the manifest.
        digest: the digest of the model's files.
        dimensions: the number of values of a vector.
        folder: the folder that the model was last loaded from.
    """

    name: str
    digest: str
    dimensions: int
    folder: str
