"""Facts that only fixes ask for: what could install, what lies about, files to be corrected."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.toolchain import Toolkit


class PackageManagers(Fact, frozen=True, kw_only=True):
    """Programs that could install something.

    Attributes:
        conda: the first of conda, mamba, micromamba and pixi there is, by path; None = none.
        conda_kind: which of them.
        conda_forge: the patient's conda packages come from conda-forge.
        system: `apt` or `dnf`; None = neither.
        candidates: system packages that a fix may want and the system's package manager has.
        sudo: path of sudo, None = not there.
        pip: the patient has pip.
        libaio: the header of libaio is where a compiler looks.
    """

    conda: str | None = None
    conda_kind: str | None = None
    conda_forge: bool = False
    system: str | None = None
    candidates: tuple[str, ...] = ()
    sudo: str | None = None
    pip: bool = True
    libaio: bool = False


class OtherToolkits(Fact, frozen=True, kw_only=True):
    """Toolkits that torch would not find by itself: earlier repairs, other environments, modules.

    Attributes:
        found: every one; `source` is `dsdoctor` or `dsdoctor-conda` for earlier fixes, `conda`, or
            the name of the module (`cuda/12.4`).
        gccs: versions of gcc of which `gcc-N` and `g++-N` are both on PATH, ascending.
    """

    found: tuple[Toolkit, ...] = ()
    gccs: tuple[int, ...] = ()


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution at a version.

    Attributes:
        name: normalised.
        version: exactly.
    """

    name: str
    version: str

    @property
    def spec(self) -> str:
        """As pip takes it."""
        return f"{self.name}=={self.version}"


class ToolkitWheels(Fact, frozen=True, kw_only=True):
    """The wheels that make up the toolkit of torch's CUDA, as pip resolves them.

    Attributes:
        release: version of the metapackage `cuda-toolkit` that torch pins (`13.0.2`).
        lacking: what the patient does not have at that version.
        present: folder of the wheels that it has (`…/site-packages/nvidia/cu13`), None = none.
    """

    release: str
    lacking: tuple[Wheel, ...] = ()
    present: str | None = None


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    """One of NVIDIA's redistributable archives.

    Attributes:
        component: `cuda_nvcc`.
        url: where it is.
        sha256: what it must have.
        size: bytes.
    """

    component: str
    url: str
    sha256: str
    size: int


class ToolkitArchives(Fact, frozen=True, kw_only=True):
    """The archives that make up a toolkit, by NVIDIA's manifest.

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
    """Texts of files that a fix may correct; only a fix asks for them.

    Attributes:
        texts: what it is (`config`, `hostfile`, `deepspeed-env`) to its path and content, which may
            contain secrets.
    """

    verbatim: ClassVar[bool] = True

    texts: dict[str, tuple[str, str]] = {}

    def get(self, what: str) -> tuple[str, str] | None:
        """Path and content, None when there is no such file."""
        return self.texts.get(what)


class FreePort(Fact, frozen=True, kw_only=True):
    """A port on which nobody listens here.

    Attributes:
        port: the first above the one that is taken.
    """

    port: int


class StaleBuilds(Fact, frozen=True, kw_only=True):
    """Built ops in the cache that are of another torch, CUDA or Python than the patient's.

    Attributes:
        folders: folder of the op to why it is stale.
        held: folders that a live process builds in or has loaded from, which are left alone.
    """

    folders: dict[str, str] = {}
    held: tuple[str, ...] = ()
