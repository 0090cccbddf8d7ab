"""Lets capr be imported where modules are missing that it needs for other things than training, as on a GPU machine.

Importing this is enough: `tantivy` and the like are then found, and hold nothing that works.
"""

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from unittest.mock import MagicMock

UNUSED = ("defusedxml", "faiss", "ir_measures", "rich", "tantivy", "typer")


class Unused(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last, so that what is installed is taken."""

    def find_spec(self, name, path=None, target=None):
        found = name.partition(".")[0] in UNUSED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if found else None

    def create_module(self, spec):
        module = ModuleType(spec.name)
        module.__getattr__ = lambda name: MagicMock(name=name)
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(Unused())
