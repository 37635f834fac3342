"""Which published torch build fits a machine: the one answer for hints and for `install-torch-build`."""

from __future__ import annotations

import contextlib

import msgspec

from dsdoctor.api import (
    Finding,
    LibCuda,
    Missing,
    NotStated,
    NvidiaKernel,
    Nvml,
    OsInfo,
    Packages,
    Patient,
    without_fix,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import Capability, code_for, is_version, numbers, pair
from dsdoctor_checks.driver._tables import FLOOR
from dsdoctor_checks.torch._tables import INDEX, PYTHONS, VARIANTS, Release, archs, has_wheels

#: Where the search starts without a torch: the newest release of the table.
NEWEST = max(VARIANTS)
#: Packages with code for one build of torch, replaced with it where they are installed.
COMPANIONS = ("torchvision", "torchaudio")
#: What to do where no published build fits.
NONE_FITS = "upgrade the driver, or build torch from source for this GPU"


class Build(msgspec.Struct, frozen=True):
    """A build of torch on PyTorch's own index.

    Attributes:
        release: major and minor version.
        cuda: the CUDA version it was built for (`12.8`); None for the CPU build.
    """

    release: Release
    cuda: str | None

    @property
    def index(self) -> str:
        """Its package index.

        >>> Build((2, 9), "12.6").index, Build((2, 9), None).index[-4:]
        ('https://download.pytorch.org/whl/cu126', '/cpu')
        """
        return f"{INDEX}/cu{self.cuda.replace('.', '')}" if self.cuda else f"{INDEX}/cpu"

    def requirement(self, version: str | None) -> str:
        """What pip installs: the installed version if it is of this release, else its newest patch.

        >>> Build((2, 9), "12.6").requirement("2.9.1+cpu"), Build((2, 7), "12.8").requirement("2.5.1")
        ('torch==2.9.1', 'torch==2.7.*')
        """
        if version is not None and is_version(version) and pair(version) == self.release:
            return f"torch=={version.split('+')[0]}"
        return f"torch=={self.release[0]}.{self.release[1]}.*"

    def command(
        self,
        version: str | None,
        patient: Patient | Missing,
        packages: Packages | Missing,
        *,
        damaged: bool = False,
    ) -> str:
        """The command that replaces the installed version with it.

        Args:
            version: the installed version; None = there is none, or it cannot be read.
            patient: the interpreter examined.
            packages: what is installed there.
            damaged: whether a torch is installed whose version cannot be read.

        >>> from dsdoctor.api import Why
        >>> none = Missing(why=Why.ABSENT, detail="")
        >>> Build((2, 9), "12.6").command("2.5.1", none, none)[:53]
        "python -m pip install --force-reinstall 'torch==2.9.*"
        """
        force = "--force-reinstall " if version or damaged else ""
        wanted = " ".join((f"'{self.requirement(version)}'", *companions(packages)))
        return pip(patient, packages, f"install {force}{wanted} --index-url {self.index}")


def offered(finding: Finding, build: Build | None) -> Finding:
    """A finding that `install-torch-build` is offered for, if there is a build to install."""
    return finding if build else without_fix(finding)


def companions(packages: Packages | Missing) -> tuple[str, ...]:
    """The installed packages that fit one build of torch, in the order of COMPANIONS."""
    found = []
    for name in COMPANIONS:
        with contextlib.suppress(NotStated):  # a paste lists a few packages
            if isinstance(packages, Packages) and name in packages.packages:
                found.append(name)
    return tuple(found)


def newest_for(python: tuple[int, int] | None) -> Release:
    """The newest release with wheels for a Python; the newest of all if none has.

    >>> newest_for((3, 10)), newest_for((3, 8)), newest_for(None) == NEWEST
    ((2, 14), (2, 4), True)
    """
    return max((known for known in VARIANTS if has_wheels(known, python)), default=NEWEST)


def choose(
    release: Release,
    driver: str | None,
    gpus: set[Capability],
    machine: str,
    python: tuple[int, int] | None,
) -> Build | None:
    """The nearest build for a driver, every GPU and a Python: same release, older, newer.

    >>> choose((2, 11), "535.104.05", {(8, 0)}, "x86_64", None)
    Build(release=(2, 11), cuda='12.8')
    >>> choose((2, 11), None, {(7, 0)}, "x86_64", None), choose((2, 5), None, {(12, 0)}, "x86_64", None)
    (Build(release=(2, 11), cuda='12.6'), Build(release=(2, 7), cuda='12.8'))
    >>> choose((2, 15), None, {(8, 0)}, "x86_64", (3, 10))
    Build(release=(2, 14), cuda='13.0')
    """
    older = sorted((known for known in VARIANTS if known < release), reverse=True)
    newer = sorted(known for known in VARIANTS if known > release)
    for known in [*([release] if release in VARIANTS else []), *older, *newer]:
        if not has_wheels(known, python):
            continue
        for cuda in VARIANTS[known]:
            floor = FLOOR.get((pair(cuda) or (0, 0))[0], "0")
            code = archs(known, cuda, machine) or ()
            if driver is not None and numbers(driver) < numbers(floor):
                continue
            if code and all(code_for(code, capability) for capability in gpus):
                return Build(known, cuda)
    return None


def none_fits(
    driver: str | None, gpus: set[Capability], machine: str, python: tuple[int, int] | None
) -> str:
    """What to do where no published build fits: where another Python helps, its version is named.

    >>> none_fits("535.104.05", {(8, 0)}, "x86_64", (3, 15))
    'use an environment with Python 3.14: it has a torch build for this driver and GPU'
    >>> none_fits("440.33.01", {(8, 0)}, "x86_64", (3, 15)) == NONE_FITS
    True
    """
    other = choose(NEWEST, driver, gpus, machine, None)
    if python is None or other is None:
        return NONE_FITS
    newest = f"3.{PYTHONS[other.release][1]}"
    return f"use an environment with Python {newest}: it has a torch build for this driver and GPU"


def driver_of(
    kernel: NvidiaKernel | Missing, nvml: Nvml | Missing, lib: LibCuda | Missing
) -> str | None:
    """The driver version that decides what CUDA runs: that of `cuda-compat` if it is in use."""
    if isinstance(lib, LibCuda) and lib.compat and lib.version:
        return lib.version
    if isinstance(kernel, NvidiaKernel) and kernel.module_version:
        return kernel.module_version
    return nvml.driver_version if isinstance(nvml, Nvml) else None


def python_of(patient: Patient | Missing) -> tuple[int, int] | None:
    """Major and minor version of the Python that torch is for; None if it is not known."""
    if isinstance(patient, Missing):
        return None
    with contextlib.suppress(NotStated):
        return pair(patient.version)
    return None


def machine_of(os: OsInfo | Missing) -> str:
    """The architecture of the machine; x86-64 if it is not known."""
    try:
        return "x86_64" if isinstance(os, Missing) else os.machine or "x86_64"
    except NotStated:
        return "x86_64"


def least_cuda(version: str | None) -> str | None:
    """The oldest CUDA version that a release was published for; None if the table does not have it.

    >>> least_cuda("2.9.1"), least_cuda("2.5.1"), least_cuda("1.4")
    ('12.6', '11.8', None)
    """
    return min(VARIANTS.get(pair(version) or (0, 0), ()), key=numbers, default=None)
