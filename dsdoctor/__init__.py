"""dsdoctor: checks whether a DeepSpeed / PyTorch GPU job will start, and why one has died.

>>> import dsdoctor
>>> sorted(name for name in dsdoctor.__all__ if name.islower() and name[0] != "_")
['check', 'diagnose', 'preflight', 'recommend', 'smoke']
"""

from __future__ import annotations

from dsdoctor.version import __version__

# not from `typing`, whose import takes longer than `dsdoctor --version` may
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dsdoctor.calls import check, diagnose, recommend, smoke
    from dsdoctor.errors import UsageError
    from dsdoctor.preflight import PreflightError, preflight

__all__ = [
    "PreflightError",
    "UsageError",
    "__version__",
    "check",
    "diagnose",
    "preflight",
    "recommend",
    "smoke",
]

_HOMES = {
    "check": "dsdoctor.calls",
    "diagnose": "dsdoctor.calls",
    "recommend": "dsdoctor.calls",
    "smoke": "dsdoctor.calls",
    "preflight": "dsdoctor.preflight",
    "PreflightError": "dsdoctor.preflight",
    "UsageError": "dsdoctor.errors",
}


def __getattr__(name: str) -> object:
    """Loads the public API when it is asked for, so that `dsdoctor --version` imports nothing."""
    if name in _HOMES:
        import importlib  # noqa: PLC0415  # only for the first use of a name

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module `dsdoctor` has no attribute `{name}`")


def __dir__() -> list[str]:
    """The public names, for completion in a notebook, where nothing was loaded yet."""
    return sorted(__all__)
