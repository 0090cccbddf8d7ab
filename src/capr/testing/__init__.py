"""The contract tests that every engine of the index has to pass; see docs/reference/engines.md.

The package needs pytest and numpy, and only tests import it.
"""

from pkgutil import iter_modules

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in iter_modules(__path__)))

from capr.testing.engine_contract import EngineContract  # noqa: E402
from capr.testing.reference import ReferenceIndex  # noqa: E402

__all__ = ["EngineContract", "ReferenceIndex"]
