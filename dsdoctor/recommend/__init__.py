"""From machine and model to launch settings: pure functions.

`dsdoctor.recommend(...)` is a function of the public API as well: calling this package calls it.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class _CallablePackage(types.ModuleType):
    """Imports of submodules bind the package to the name that the function has."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return importlib.import_module("dsdoctor.calls").recommend(*args, **options)


sys.modules[__name__].__class__ = _CallablePackage
