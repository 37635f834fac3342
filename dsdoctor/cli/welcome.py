"""What `dsdoctor` without a command shows: one look at the machine, and what to do next."""

from __future__ import annotations

import shutil
import textwrap

import click

from dsdoctor.cli import loading
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_machine
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.python import DeepSpeedInstall, PatientChoice, TorchBuild
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.report.text import clean
from dsdoctor.version import __version__

#: A quick look, not an examination: facts that take longer are left out.
SECONDS = 10.0
NEXT = (
    ("dsdoctor check", "will a job start here?"),
    ("dsdoctor recommend --model MODEL", "which settings fit?"),
    ("dsdoctor smoke", "does a short run work?"),
    ("dsdoctor run -- CMD", "run a job and watch it"),
    ("dsdoctor diagnose LOG", "why did a run die?"),
)


def show() -> int:
    """Prints the screen; never fails because of the machine."""
    kinds: tuple[type[Fact], ...] = (
        Gpus,
        Nvml,
        OsInfo,
        PatientChoice,
        TorchBuild,
        DeepSpeedInstall,
    )
    wanted = frozenset(kinds)
    request = Request(run=RunNeeds(quick=True), facts=wanted, timeout=SECONDS)
    rows: list[tuple[str, str]] = []
    try:
        snapshot = read_machine(request, loading.load_registry())
    except UsageError as error:
        rows = [("environment", str(error))]
    else:
        rows = [("GPUs", _gpus(snapshot)), ("environment", _environment(snapshot))]
    click.echo(f"dsdoctor {__version__}\n")
    for name, text in rows:
        click.echo(
            textwrap.fill(
                clean(text),
                max(40, shutil.get_terminal_size((80, 24)).columns - 1),
                initial_indent=f"  {name:<13}",
                subsequent_indent=" " * 15,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    click.echo()
    for command, question in NEXT:
        click.echo(f"  {command:<34}{question}")
    click.echo("\nAll commands: dsdoctor --help")
    return 0


def _gpus(snapshot: Snapshot) -> str:
    gpus, nvml = snapshot.get(Gpus), snapshot.get(Nvml)
    if isinstance(gpus, Missing) or not gpus.gpus:
        return "none reported by an NVIDIA driver"
    names: dict[str, int] = {}
    for gpu in gpus.gpus:
        name = gpu.name or "unreadable GPU"
        names[name] = names.get(name, 0) + 1
    text = ", ".join(f"{count} × {name}" for name, count in names.items())
    driver = None if isinstance(nvml, Missing) else nvml.driver_version
    return f"{text} (driver {driver})" if driver else text


def _environment(snapshot: Snapshot) -> str:
    choice = snapshot.get(PatientChoice)
    if isinstance(choice, Missing):
        return "no Python interpreter was found; pass one with `--python`"
    torch, deepspeed = snapshot.get(TorchBuild), snapshot.get(DeepSpeedInstall)
    parts = [
        f"{name} {fact.version}"
        for name, fact in (("torch", torch), ("deepspeed", deepspeed))
        if not isinstance(fact, Missing) and fact.version
    ]
    if not parts:
        return (
            f"{choice.executable} has neither torch nor deepspeed; activate the environment "
            "that you train in, or pass it with `--python`"
        )
    return f"{', '.join(parts)} in {choice.executable} ({choice.chosen_by})"
