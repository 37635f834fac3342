"""Facts that only fixes need: package managers, toolkits to reuse, files to correct."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.toolchain import Toolkit


class PackageManagers(Fact, frozen=True, kw_only=True):
    """Programs that could install something.

    Attributes:
        conda: path of the first of conda, mamba, micromamba and pixi that exists; None = none.
        conda_kind: which of them.
        conda_forge: the environment's conda packages come from conda-forge.
        system: `apt` or `dnf`; None = neither.
        candidates: system packages that a fix may need and that the package manager offers.
        sudo: path of sudo; None = not installed.
        pip: the environment has pip.
        libaio: a compiler finds the header of libaio.
    """

    conda: str | None = None
    conda_kind: str | None = None
    conda_forge: bool = False
    system: str | None = None
    candidates: tuple[str, ...] = ()
    sudo: str | None = None
    pip: bool = True
    libaio: bool = False


class InstalledGcc(msgspec.Struct, frozen=True, kw_only=True):
    """A gcc that is not on PATH.

    Attributes:
        major: its major version.
        cc: path of the C compiler.
        cxx: path of the C++ compiler.
        source: the software collection (`gcc-toolset-12`) or the module (`gcc/12.2.0`).
        libraries: folder of its libstdc++, if what it builds may need that one; None = it links
            what the system's lacks into what it builds, as software collections do.
    """

    major: int
    cc: str
    cxx: str
    source: str
    libraries: str | None = None


class OtherToolkits(Fact, frozen=True, kw_only=True):
    """Toolkits that torch would not find on its own: earlier fixes, other environments, modules.

    Attributes:
        found: the toolkits; `source` is `dsdoctor` or `dsdoctor-conda` for earlier fixes, `conda`,
            or the name of the module (`cuda/12.4`).
        gccs: gcc major versions with both `gcc-N` and `g++-N` on PATH, ascending.
        gccs_elsewhere: others, of software collections and environment modules.
    """

    found: tuple[Toolkit, ...] = ()
    gccs: tuple[int, ...] = ()
    gccs_elsewhere: tuple[InstalledGcc, ...] = ()


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution at a version.

    Attributes:
        name: normalized.
        version: exact version.
    """

    name: str
    version: str

    @property
    def spec(self) -> str:
        """The requirement as pip takes it."""
        return f"{self.name}=={self.version}"


class ToolkitWheels(Fact, frozen=True, kw_only=True):
    """The wheels that make up the toolkit of torch's CUDA, as pip resolves them.

    Attributes:
        release: version of the metapackage `cuda-toolkit` that torch pins (`13.0.2`).
        lacking: wheels that the environment does not have at that version.
        present: folder of the wheels that it has (`…/site-packages/nvidia/cu13`); None = none.
    """

    release: str
    lacking: tuple[Wheel, ...] = ()
    present: str | None = None


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    """One of NVIDIA's redistributable archives.

    Attributes:
        component: `cuda_nvcc`.
        url: URL of the archive.
        sha256: expected SHA-256.
        size: size in bytes.
    """

    component: str
    url: str
    sha256: str
    size: int


class ToolkitArchives(Fact, frozen=True, kw_only=True):
    """The archives that make up a toolkit, according to NVIDIA's manifest.

    Attributes:
        release: `12.4.1`.
        manifest: URL it was read from.
        archives: in order.
        lacking: components that the manifest does not have for this platform.
    """

    release: str
    manifest: str
    archives: tuple[Archive, ...] = ()
    lacking: tuple[str, ...] = ()


class RepairFiles(Fact, frozen=True, kw_only=True):
    """Contents of files that a fix may correct; only fixes read them.

    Attributes:
        texts: kind of file (`config`, `hostfile`, `deepspeed-env`) to its path and content, which
            may contain secrets.
    """

    verbatim: ClassVar[bool] = True

    texts: dict[str, tuple[str, str]] = {}

    def get(self, what: str) -> tuple[str, str] | None:
        """Path and content; None if there is no such file."""
        return self.texts.get(what)


class FreePort(Fact, frozen=True, kw_only=True):
    """A port on which nothing listens on this node.

    Attributes:
        port: the first free port above the one in use.
    """

    port: int


class StaleBuilds(Fact, frozen=True, kw_only=True):
    """Built ops in the cache that belong to another torch, CUDA or Python than the environment's.

    Attributes:
        folders: folder of the op to why it is stale.
        held: folders that a live process builds in or has loaded from; they are left alone.
    """

    folders: dict[str, str] = {}
    held: tuple[str, ...] = ()
