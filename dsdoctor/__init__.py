"""dsdoctor: says whether a DeepSpeed / PyTorch GPU job will start, before it starts."""

from __future__ import annotations

from dsdoctor.version import __version__

# not from `typing`, whose import takes longer than `dsdoctor --version` may
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dsdoctor.preflight import PreflightError, preflight

__all__ = ["PreflightError", "__version__", "preflight"]


def __getattr__(name: str) -> object:
    """Loads the public API when it is asked for, so that `dsdoctor --version` imports nothing."""
    if name in ("preflight", "PreflightError"):
        import importlib  # noqa: PLC0415

        return getattr(importlib.import_module("dsdoctor.preflight"), name)
    raise AttributeError(f"module `dsdoctor` has no attribute `{name}`")
