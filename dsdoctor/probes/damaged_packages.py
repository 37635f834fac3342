"""Compares the packages of an import that failed with what their installer recorded.

Only those: an environment has 50,000 files and more, and a healthy one is not read for this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    DamagedPackage,
    DamagedPackages,
    DeepSpeedLive,
    ImportOutcome,
    Missing,
    ModuleImports,
    RunNeeds,
    TorchLive,
    probe,
)
from dsdoctor.host import Host
from dsdoctor.interpreter import run_child
from dsdoctor.lazy_regex import lazy
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice

#: Reading the lists of installed files and the sizes of those of some packages; a cold network disk
#: may need this.
SECONDS = 60.0
#: No import involves more packages.
_MOST = 30
_FOLDER = lazy(r"[/\\](?:site|dist)-packages[/\\]([A-Za-z_]\w*)")
_QUOTED = lazy(r"'([A-Za-z_]\w*)(?:\.[\w.]+)?'")


@probe
def damaged_packages(
    host: Host,
    run: RunNeeds,
    choice: PatientChoice,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
    modules: ModuleImports | Missing,
) -> DamagedPackages | Missing:
    """Reads nothing where all imports worked."""
    tops = list(dict.fromkeys(_tops(torch, deepspeed, modules)))[:_MOST]
    if not tops:
        return DamagedPackages()
    records, result = run_child(
        host, choice.executable, "installed_files", tops, timeout=SECONDS, cwd=run.cwd
    )
    if not any(record.get("done") for record in records):
        why = Why.TIMEOUT if result.timed_out else Why.BROKEN
        return Missing(why=why, detail=f"`{choice.executable}` did not compare its packages")
    return DamagedPackages(packages=tuple(map(_package, (r for r in records if "package" in r))))


def _package(record: dict[str, Any]) -> DamagedPackage:
    return DamagedPackage(
        name=str(record["package"]),
        version=str(record["version"]),
        missing=tuple(map(str, record.get("missing", ()))),
        empty=tuple(map(str, record.get("empty", ()))),
        cut=tuple(map(str, record.get("cut", ()))),
        files=int(record.get("files", 0)),
    )


def _tops(
    torch: TorchLive | Missing, deepspeed: DeepSpeedLive | Missing, modules: ModuleImports | Missing
) -> Iterator[str]:
    """Modules of the top level that the errors name, the imported one first."""
    failed: list[tuple[str, ImportOutcome]] = []
    for name, live in (("torch", torch), ("deepspeed", deepspeed)):
        if not isinstance(live, Missing):
            failed.append((name, live.imported))
    if isinstance(modules, ModuleImports):
        failed += [*modules.outcomes.items(), *modules.names.items()]
    for name, outcome in failed:
        if outcome.ok or outcome.error_type == "hang":
            continue
        text = f"{outcome.message or ''}\n{outcome.traceback}"
        yield name.partition(":")[0].partition(".")[0]
        for found in (*_FOLDER.finditer(text), *_QUOTED.finditer(text)):
            yield found[1]
