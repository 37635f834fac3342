"""Another gcc for nvcc and torch's headers: an installed one, conda's or the distribution's."""

from __future__ import annotations

import msgspec

from dsdoctor.api import (
    FixRequest,
    OsInfo,
    OtherToolkits,
    PackageManagers,
    Patient,
    Reach,
    Run,
    Step,
    TorchBuild,
)
from dsdoctor_checks._util import GIB, at_least, listed
from dsdoctor_checks.fixes._activation import base_of
from dsdoctor_checks.fixes._routes import system_install

#: The oldest gcc that torch's headers accept: C++20 from torch 2.12 on, C++17 before.
OLDEST = ((10, "2.12"), (9, "2.1"))
UNBOUNDED = 99
#: What a suitable compiler ends.
CONDITIONS = ("jit-build-compiler-missing", "jit-build-gcc-too-new", "jit-build-gcc-too-old")
#: The newest gcc to look for in a distribution or on conda-forge if there is no upper bound.
NEWEST_OFFERED = 16
NEWEST_OF_CONDA = 13


class HostCompiler(msgspec.Struct, frozen=True):
    """A gcc that was chosen.

    Attributes:
        cc: name or path of the C compiler.
        cxx: the same of the C++ compiler.
        steps: that install it; none if it is installed.
        creates: directories that the steps create.
        libraries: folder of the libstdc++ that its programs need; None = the system's is enough.
    """

    cc: str
    cxx: str
    steps: tuple[Step, ...] = ()
    creates: tuple[str, ...] = ()
    libraries: str | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Torch's builds read CC and CXX; the third is for builds that call nvcc themselves."""
        found = {"CC": self.cc, "CXX": self.cxx, "NVCC_PREPEND_FLAGS": f"-ccbin {self.cxx}"}
        if self.libraries:
            found["LD_LIBRARY_PATH"] = f"{self.libraries}:$LD_LIBRARY_PATH"
        return found


def oldest_for(torch: TorchBuild) -> int:
    """The oldest gcc major that compiles torch's headers."""
    return next((major for major, since in OLDEST if at_least(torch.version, since)), 7)


def words(bounds: tuple[int, int]) -> str:
    """The bounds in words."""
    oldest, newest = bounds
    return f"gcc {oldest} or newer" + (f", up to {newest}" if newest < UNBOUNDED else "")


def choose(
    others: OtherToolkits,
    managers: PackageManagers,
    patient: Patient,
    system: OsInfo,
    request: FixRequest,
    bounds: tuple[int, int],
    why: str,
) -> HostCompiler | str:
    """The newest gcc between both bounds that is installed or may be installed.

    Returns:
        The compiler, or what the user can do if there is none.
    """
    oldest, newest = bounds
    at_hand = [major for major in others.gccs if oldest <= major <= newest]
    if at_hand:
        return HostCompiler(f"gcc-{max(at_hand)}", f"g++-{max(at_hand)}")
    elsewhere = [gcc for gcc in others.gccs_elsewhere if oldest <= gcc.major <= newest]
    if elsewhere:  # one that needs no libraries at run time first
        best = max(elsewhere, key=lambda gcc: (gcc.libraries is None, gcc.major))
        return HostCompiler(best.cc, best.cxx, libraries=best.libraries)
    by_conda = _conda(managers, *base_of(patient, request), min(newest, NEWEST_OF_CONDA), system)
    if by_conda is not None:
        return by_conda
    majors = range(min(newest, NEWEST_OFFERED), oldest - 1, -1)
    offered = next((o for n in majors if (o := _of_system(n, managers.candidates))), None)
    if offered is None:
        return f"install {words(bounds)}"
    packages, cc, cxx = offered
    if not request.allows(Reach.SYSTEM):
        return f"pass `--reach system` to install `{packages[-1]}` with {managers.system}"
    if not system.is_root and not managers.sudo:
        return f"ask an administrator to install {listed([f'`{name}`' for name in packages])}"
    return HostCompiler(cc, cxx, (system_install(managers, packages, system.is_root, why),))


def _of_system(major: int, candidates: tuple[str, ...]) -> tuple[tuple[str, ...], str, str] | None:
    """Packages of the distribution with a gcc, and where its compilers are then."""
    if f"g++-{major}" in candidates:
        names = (f"gcc-{major}", f"g++-{major}")
        return names, *names
    if f"gcc-toolset-{major}-gcc-c++" in candidates:  # Red Hat's distributions, from 8 on
        folder = f"/opt/rh/gcc-toolset-{major}/root/usr/bin"
        return (f"gcc-toolset-{major}-gcc-c++",), f"{folder}/gcc", f"{folder}/g++"
    return None


def _conda(
    managers: PackageManagers, base: str, reach: Reach, major: int, system: OsInfo
) -> HostCompiler | None:
    """A gcc from conda-forge in a separate prefix."""
    if managers.conda is None or managers.conda_kind == "pixi" or system.machine != "x86_64":
        return None
    prefix = f"{base}/gcc-{major}"
    tools = f"{prefix}/bin/x86_64-conda-linux-gnu"
    step = Run(
        argv=(managers.conda, "create", "--yes", "--prefix", prefix, "--override-channels",
              "--channel", "conda-forge", f"gxx_linux-64={major}"),
        why="install a suitable compiler in a separate prefix",
        creates=prefix,
        needs_bytes=GIB,
        reach=reach,
    )  # fmt: skip
    return HostCompiler(f"{tools}-gcc", f"{tools}-g++", (step,), (prefix,))
