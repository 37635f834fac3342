"""Chooses or installs a host compiler that nvcc and torch accept.

## What it does
If a suitable gcc is on PATH under its versioned name (`gcc-13` and `g++-13`), selects it with `CC` and
`CXX`, which torch's builds read, and `NVCC_PREPEND_FLAGS` for builds that call nvcc directly.
Otherwise selects one of a software collection (`gcc-toolset-12` in `/opt/rh`) or of an environment
module (`module avail gcc`) by its path. If there is none either, installs one with conda into a
separate prefix, or with `--reach system` from the distribution.

## Undo
Removes the snippet and the directory, or the package manager removes what it installed.
"""

from __future__ import annotations

from dsdoctor.api import (
    Compilers,
    CudaToolkits,
    FixRequest,
    Impossible,
    Missing,
    OsInfo,
    OtherToolkits,
    PackageManagers,
    Patient,
    Plan,
    TorchBuild,
    fix,
    reach_of,
)
from dsdoctor_checks._util import pair
from dsdoctor_checks.fixes import _host_compiler
from dsdoctor_checks.fixes._activation import activation
from dsdoctor_checks.ops._tables import NEWEST_GCC

NAME = "install-compiler"


@fix(NAME)
def install_compiler(
    compilers: Compilers,
    toolkits: CudaToolkits | Missing,
    others: OtherToolkits,
    managers: PackageManagers,
    torch: TorchBuild,
    patient: Patient,
    system: OsInfo,
    request: FixRequest,
) -> Plan | Impossible | None:
    """Chooses a compiler that torch's headers and nvcc both accept."""
    toolkit = None if isinstance(toolkits, Missing) else toolkits.toolkit
    cuda = pair(toolkit.version) if toolkit and toolkit.usable and torch.cuda else None
    newest = NEWEST_GCC.get(cuda or (0, 0), _host_compiler.UNBOUNDED)
    oldest = _host_compiler.oldest_for(torch)
    now = (compilers.cxx, compilers.cc)
    if all(c.path and (c.kind != "gcc" or oldest <= (c.major or oldest) <= newest) for c in now):
        return None
    has = " and ".join(
        f"`{c.command}` is {c.kind or 'unknown'} {c.version}" if c.path else f"no `{c.command}`"
        for c in now
    )
    bounds = (oldest, newest)
    why = f"{_host_compiler.words(bounds)} is needed"
    gcc = _host_compiler.choose(others, managers, patient, system, request, bounds, why)
    if isinstance(gcc, str):
        return Impossible(why=f"{has}, but {why}; {gcc}")
    tail, line = activation(NAME, gcc.variables, patient, request)
    steps = (*gcc.steps, *tail)
    return Plan(
        name=NAME,
        title=f"use `{gcc.cxx}` as the host compiler",
        steps=steps,
        proves=_host_compiler.CONDITIONS,
        reasons=(f"{has}, but {why}",),
        reach=reach_of(steps),
        activate=line,
        creates=gcc.creates,
    )
