"""Chooses or installs a host compiler that nvcc and torch accept.

## What it does
If a gcc that serves is on PATH under its versioned name (`gcc-13` and `g++-13`), only selects it
through `CC`, `CXX` (what torch's builds read) and `NVCC_PREPEND_FLAGS` (for builds that call nvcc
themselves). Else conda installs one into a prefix of its own, or with `--reach system` the
distribution does.

## Undo
Removes the snippet and the folder, or the package manager removes what it installed.
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
    Reach,
    Step,
    TorchBuild,
    fix,
    reach_of,
)
from dsdoctor_checks._util import at_least, pair
from dsdoctor_checks.build._tables import NEWEST_GCC
from dsdoctor_checks.fixes._activation import activation, base_of
from dsdoctor_checks.fixes._routes import conda_gcc, system_install

NAME = "install-compiler"
#: What each needs at least: C++20 from torch 2.12 on, C++17 before (knowledge A2).
OLDEST = ((10, "2.12"), (9, "2.1"))


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
    """Between what torch's headers need and what nvcc refuses."""
    toolkit = None if isinstance(toolkits, Missing) else toolkits.toolkit
    cuda = pair(toolkit.version) if toolkit and toolkit.usable and torch.cuda else None
    newest = NEWEST_GCC.get(cuda or (0, 0), 99)
    oldest = next((major for major, since in OLDEST if at_least(torch.version, since)), 7)
    now = (compilers.cxx, compilers.cc)
    if all(c.path and (c.kind != "gcc" or oldest <= (c.major or oldest) <= newest) for c in now):
        return None
    bounds = f"gcc {oldest} or newer" + (f", up to {newest}" if cuda else "")
    has = " and ".join(
        f"`{c.command}` is {c.kind or 'unknown'} {c.version}" if c.path else f"no `{c.command}`"
        for c in now
    )
    steps: tuple[Step, ...] = ()
    creates: tuple[str, ...] = ()
    at_hand = [major for major in others.gccs if oldest <= major <= newest]
    offered = [n for n in range(oldest, min(newest, 16) + 1) if f"g++-{n}" in managers.candidates]
    names = {"CC": "gcc", "CXX": "g++"}
    by_conda = conda_gcc(managers, *base_of(patient, request), min(newest, 13), system.machine)
    if at_hand:
        names = {"CC": f"gcc-{at_hand[-1]}", "CXX": f"g++-{at_hand[-1]}"}
    elif by_conda is not None:
        step, names, prefix = by_conda
        steps, creates = (step,), (prefix,)
    elif offered and request.allows(Reach.SYSTEM) and (system.is_root or managers.sudo):
        wanted = (f"gcc-{offered[-1]}", f"g++-{offered[-1]}")
        steps = (system_install(managers, wanted, system.is_root, f"{bounds} is needed"),)
        names = {"CC": wanted[0], "CXX": wanted[1]}
    else:
        way = f"install {bounds}"
        if offered:
            way = (
                f"give `--reach system`, so that {managers.system} may install `g++-{offered[-1]}`"
            )
        return Impossible(why=f"{has}, but {bounds} is needed; {way}")
    variables = {**names, "NVCC_PREPEND_FLAGS": f"-ccbin {names['CXX']}"}
    tail, line = activation(NAME, variables, patient, request)
    steps = (*steps, *tail)
    return Plan(
        name=NAME,
        title=f"`{names['CXX']}` as the host compiler",
        steps=steps,
        proves=("jit-build-compiler-missing", "jit-build-gcc-too-new", "jit-build-gcc-too-old"),
        reasons=(f"{has}, but {bounds} is needed",),
        reach=reach_of(steps),
        activate=line,
        creates=creates,
    )
