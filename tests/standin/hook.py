"""Loads the stand-in's operators as soon as torch has been imported.

`standin.pth` imports this module at the start of every interpreter of the environment where
$FAKE_NVML names a machine.
"""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence


class _Loader(importlib.abc.Loader):
    """Loads torch, then the operators."""

    def __init__(self, real: importlib.abc.Loader) -> None:
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self.real.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self.real.exec_module(module)
        library = os.path.join(sys.prefix, "standin", "libstandin.so")  # noqa: PTH118  # as light as can be
        if not os.path.exists(library):  # noqa: PTH110
            return
        # torch warns of every operator that is registered anew
        kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        try:
            ctypes.CDLL(library).standin_install()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(null)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds torch once, and steps aside."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
