"""Facts about the patient, as short as the rows of the tests."""

from __future__ import annotations

from typing import Any

from dsdoctor.api import (
    DeepSpeedInstall,
    DeepSpeedLive,
    ImportOutcome,
    Package,
    Packages,
    Patient,
    TorchLive,
)

SITE = "/env/lib/python3.11/site-packages"


def packages(**versions: str) -> Packages:
    """Packages of these versions; `_` in a name stands for `-`."""
    named = {name.replace("_", "-"): version for name, version in versions.items()}
    return Packages(
        packages={n: Package(name=n, version=v, location=SITE) for n, v in named.items()}
    )


def patient(**changes: Any) -> Patient:
    """A venv with Python 3.11."""
    usual: dict[str, Any] = {
        "executable": "/env/bin/python",
        "chosen_by": "VIRTUAL_ENV",
        "version": "3.11.7",
        "prefix": "/env",
        "kind": "venv",
        "bin_dir": "/env/bin",
    }
    return Patient(**{**usual, **changes})


def deepspeed(version: str | None = "0.19.8", **changes: Any) -> DeepSpeedInstall:
    """DeepSpeed on disk."""
    return DeepSpeedInstall(version=version, **changes)


def torch_live(*, works: bool = True) -> TorchLive:
    """An import of torch."""
    return TorchLive(imported=ImportOutcome(ok=works, error_type=None if works else "OSError"))


def deepspeed_live(error: str = "", kind: str = "ImportError") -> DeepSpeedLive:
    """An import of deepspeed, which worked if there is no error."""
    outcome = ImportOutcome(ok=not error, error_type=kind if error else None, message=error or None)
    return DeepSpeedLive(imported=outcome)
