"""The config enables a monitor whose package is not installed.

## Why it matters
`tensorboard`, `wandb` and `comet` need a package that DeepSpeed does not depend on. Rank 0 imports
it when the engine is created, after the model has been loaded. It stops with an `ImportError`, and
the other ranks wait for it.

## What to do
Install the package, or set `"enabled": false`.

## References
- deepspeed/monitor/monitor.py, deepspeed/monitor/utils.py (0.19.8, 2026-11-22)
- transformers/integrations/integration_utils.py (5.23.0, 2026-11-22)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DsConfig,
    Finding,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import at_least

from ._tables import enabled

CONDITION = Condition("monitor-package-missing", id="DSD1312", scope=Scope.JOB, since="0.1")

#: Section to the distributions that provide its module, and the oldest release that DeepSpeed
#: accepts.
_NEEDS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "tensorboard": (("tensorboard", "tb-nightly"), None),
    "wandb": (("wandb",), None),
    "comet": (("comet-ml",), "3.41.0"),
}


@check(CONDITION)
def monitors_are_installed(
    config: DsConfig, packages: Packages, patient: Patient | Missing
) -> Iterator[Finding]:
    """Fails for each enabled monitor that rank 0 could not import."""
    clean = True
    for section, (names, oldest) in _NEEDS.items():
        if not enabled(config.section(section)):
            continue
        package = names[0]
        version = next((found for name in names if (found := packages.version(name))), None)
        if version is not None and (oldest is None or at_least(version, oldest)):
            continue
        clean = False
        wanted = package if oldest is None else f"{package}>={oldest}"
        found = "is not installed" if version is None else f"is {version}, older than {oldest}"
        key = f"{section}.enabled"
        install = pip(patient, packages, f"install '{wanted}'")
        yield fail(
            f"{config.named(key)} is true, but `{package}` {found}",
            effect="rank 0 stops with `ImportError` in `deepspeed.initialize`",
            hint=f"run `{install}`, or set `{key}` to false",
            key=key,
            line=config.lines.get(key),
            package=package,
            version=version,
            oldest=oldest,
        )
    if clean:
        yield ok()


HINT = "install the package, or remove the monitor from the config or from `report_to`"

SIGNATURES = (
    Signature(
        pattern=r"\w{1,40}Callback requires [`']?(?P<package>[A-Za-z][\w-]{1,40})\S{0,30} to be installed",
        message="A callback of the Hugging Face Trainer needs `{package}`, which is not installed",
        source="transformers 5.23.0 integrations/integration_utils.py",
        examples=(
            "RuntimeError: WandbCallback requires wandb to be installed. Run `pip install wandb`.",
            "RuntimeError: CometCallback requires comet-ml>=3.43.2 to be installed. Run `pip install comet-ml>=3.43.2`.",
            "RuntimeError: CodeCarbonCallback requires `codecarbon` to be installed. Run `pip install codecarbon`.",
        ),
        not_examples=("WandbCallback requires wandb",),
        level=Level.CERTAIN,
    ),
)
