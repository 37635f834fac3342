"""Modules that can be called: `dsdoctor.smoke(...)` is a function, and `dsdoctor.smoke` a package.

Importing a submodule binds it to its name in `dsdoctor`, over the function of that name; so the
module itself passes a call on.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


class _Callable(types.ModuleType):
    _function = ""

    def __call__(self, *args: Any, **options: Any) -> Any:
        home, _, name = self._function.rpartition(".")
        return getattr(importlib.import_module(home), name)(*args, **options)


def make_callable(module: str, function: str) -> None:
    """Makes a module pass calls on to a function.

    Args:
        module: dotted name of the module, which is being imported.
        function: dotted name of the function; its module is imported on the first call.
    """
    kind = type(f"{module} (callable)", (_Callable,), {"_function": function})
    sys.modules[module].__class__ = kind
