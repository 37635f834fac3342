"""Looks for NCCL's network plugins, in the folders where NCCL would find them."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Iterator

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.network import NcclPlugins
from dsdoctor.model.facts.python import Patient
from dsdoctor.probes.launchers import parse_path
from dsdoctor.probes.libcuda import DEFAULT_FOLDERS, loader_folders

#: Source: NCCL 2.32 src/plugin/plugin_open.cc; RCCL 2.27 the same with its own name.
LIBRARIES = "lib[nr]ccl-net*.so*"


def _folders(host: Host, patient: Patient) -> Iterator[str]:
    """Folders of the loader; NCCL's own comes with the path that its library names."""
    yield from parse_path(host.env.get("LD_LIBRARY_PATH", ""))
    yield from loader_folders(host)
    yield from DEFAULT_FOLDERS
    yield posixpath.join(patient.prefix, "lib")
    for site in patient.sys_path:
        yield posixpath.join(site, "nvidia/nccl/lib")
        yield posixpath.join(site, "torch/lib")


@probe
def nccl_plugins(host: Host, patient: Patient) -> NcclPlugins:
    """The plugins that NCCL could load; none is loaded."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"NCCL's plugins are not looked for on {host.system}")
    found: list[str] = []
    for folder in dict.fromkeys(_folders(host, patient)):
        if folder.startswith("/"):
            with contextlib.suppress(HostError):
                found += host.glob(posixpath.join(folder, LIBRARIES))
    return NcclPlugins(libraries=tuple(found))
