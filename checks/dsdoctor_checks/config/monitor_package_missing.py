"""The config or an option enables a monitor whose package is not installed.

## Why it matters
`tensorboard`, `wandb` and `comet` need a package that DeepSpeed does not depend on. Rank 0 imports
it when the engine is created, after the model has been loaded. It stops with an `ImportError`, and
the other ranks wait for it. Hugging Face's Trainer stops in every rank, when it is created, if
`report_to` selects a tracker that is not installed.

## What to do
Install the package, or set `"enabled": false`; for the Trainer, pass `--report_to none`.

## References
- deepspeed/monitor/monitor.py, deepspeed/monitor/utils.py (0.19.8, 2026-11-22)
- transformers/integrations/integration_utils.py (5.23.0, 2026-11-22; 4.30 and 5.24, 2026-11-30)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DsConfig,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    ScriptCalls,
    ScriptImports,
    Signature,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._settings import chosen
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


#: Values of the Trainer's `report_to` to the distributions of which it needs one, as
#: `is_…_available` of integration_utils.py asks for them.
_TRACKERS: dict[str, tuple[str, ...]] = {
    "clearml": ("clearml",),
    "codecarbon": ("codecarbon",),
    "comet_ml": ("comet-ml",),
    "dvclive": ("dvclive",),
    "mlflow": ("mlflow", "mlflow-skinny"),
    "swanlab": ("swanlab",),
    "tensorboard": ("tensorboard", "tb-nightly", "tensorboardx"),
    "trackio": ("trackio",),
    "wandb": ("wandb",),
}
#: Scripts that import one of these pass `--report_to` to the Trainer's arguments.
_TRAINERS = frozenset({"transformers", "trl", "sentence_transformers"})


def _of_trainer(
    command: LaunchCommand | Missing,
    calls: ScriptCalls | Missing,
    script: ScriptImports | Missing,
    packages: Packages,
    patient: Patient | Missing,
) -> Iterator[Finding]:
    """What `report_to` of a script that uses the Trainer selects and is not installed."""
    if isinstance(script, Missing):
        return
    if _TRAINERS.isdisjoint(script.found) or packages.version("transformers") is None:
        return
    for tracker, said, line in chosen("report_to", command, calls):
        names = _TRACKERS.get(tracker, ())
        if not names or any(packages.version(name) for name in names):
            continue
        install = pip(patient, packages, f"install {names[0]}")
        none = "pass `--report_to none`" if line is None else 'write `report_to="none"`'
        yield fail(
            f"{said}, but `{names[0]}` is not installed",
            effect="every rank stops when it creates the Trainer: a callback `requires"
            f" {tracker} to be installed`",
            hint=f"run `{install}`, or {none}",
            option="report_to",
            value=tracker,
            line=line,
            package=names[0],
        )


@check(CONDITION)
def monitors_are_installed(
    config: DsConfig | Missing,
    packages: Packages,
    patient: Patient | Missing,
    command: LaunchCommand | Missing,
    calls: ScriptCalls | Missing,
    script: ScriptImports | Missing,
) -> Iterator[Finding]:
    """Fails for each enabled monitor that could not be imported."""
    of_trainer = list(_of_trainer(command, calls, script, packages, patient))
    yield from of_trainer
    if isinstance(config, Missing):
        if not of_trainer:
            yield skip(config.detail)
        return
    clean = not of_trainer
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
