"""Reads what only fixes need: package managers, toolkits elsewhere, files.

No other command runs these: some of them query an index or a mirror.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator

import msgspec

from dsdoctor.api import (
    ExtensionCache,
    FixRequest,
    Missing,
    Patient,
    Probe,
    RunNeeds,
    Toolkit,
    TorchBuild,
    Why,
    probe,
)
from dsdoctor.fixes.downloads import toolkit_archives, toolkit_wheels
from dsdoctor.fixes.modules import GCC, Modules
from dsdoctor.host import Host, HostError, exists, home_folder, matches, read_text
from dsdoctor.hostfile import DEFAULT_HOSTFILE
from dsdoctor.interpreter import conda_environments
from dsdoctor.model.facts.launch import MasterPort
from dsdoctor.model.facts.repair import (
    FreePort,
    InstalledGcc,
    OtherToolkits,
    PackageManagers,
    RepairFiles,
    StaleBuilds,
)
from dsdoctor.probes.compilers import compiler
from dsdoctor.probes.cuda_toolkits import has_library, missing_headers, parse_nvcc
from dsdoctor.probes.extension_cache import builders_in

CONDA_KINDS = ("mamba", "micromamba", "conda", "pixi")
SYSTEM_SECONDS = 60.0


def probes() -> tuple[Probe, ...]:
    """All probes that only fixes need."""
    return (
        package_managers,
        other_toolkits,
        toolkit_wheels,
        toolkit_archives,
        repair_files,
        free_port,
        stale_builds,
    )


# ---- package managers --------------------------------------------------------------------------


def _conda(host: Host) -> tuple[str | None, str | None]:
    for kind in CONDA_KINDS:
        names = {"conda": "CONDA_EXE", "mamba": "MAMBA_EXE", "micromamba": "MAMBA_EXE"}
        given = host.env.get(names.get(kind, ""), "")
        if given and posixpath.basename(given) == kind and exists(host, given):
            return given, kind
        if found := host.which(kind):
            return found, kind
    return None, None


def _candidates(host: Host, manager: str, names: list[str]) -> tuple[str, ...]:
    """Which of some system packages the package manager could install."""
    try:
        if manager == "apt":
            text = host.run(["apt-cache", "policy", *names], timeout=SYSTEM_SECONDS).text
            rows = re.findall(r"^(\S+):\n(?:.*\n)*?\s+Candidate: (\S+)", text, re.MULTILINE)
            return tuple(name for name, version in rows if version != "(none)")
        query = ["dnf", "-q", "repoquery", "--qf", "%{name}\\n", *names]
        text = host.run(query, timeout=SYSTEM_SECONDS).text
        return tuple(name for name in names if name in text.split())
    except HostError:
        return ()


@probe
def package_managers(host: Host, patient: Patient, torch: TorchBuild | Missing) -> PackageManagers:
    """The package managers that could install something, and what the system's one offers."""
    conda, kind = _conda(host)
    forge = False
    if patient.kind == "conda":
        with contextlib.suppress(HostError):
            records = host.glob(f"{patient.prefix}/conda-meta/python-3*.json")
            forge = any("conda-forge" in read_text(host, path)[:4000] for path in records)
    system = "apt" if host.which("apt-get") else "dnf" if host.which("dnf") else None
    names = ["ninja-build", "g++", "gcc-c++", "libaio-dev", "libaio-devel", "sudo"]
    python = ".".join(patient.version.split(".")[:2])
    names += [f"python{python}-dev", "python3-dev", "python3-devel", f"python{python}-devel"]
    names += [f"{tool}-{major}" for tool in ("gcc", "g++") for major in range(9, 17)]
    names += [f"gcc-toolset-{major}-gcc-c++" for major in range(9, 17)]
    cuda = None if isinstance(torch, Missing) else torch.cuda
    if cuda:
        names.append(f"cuda-toolkit-{cuda.replace('.', '-')}")
    return PackageManagers(
        conda=conda,
        conda_kind=kind,
        conda_forge=forge,
        system=system,
        candidates=_candidates(host, system, names) if system else (),
        sudo=host.which("sudo"),
        pip=_has_pip(host, patient),
        libaio=any(
            exists(host, f"{folder}/include/libaio.h")
            for folder in ("/usr", "/usr/local", patient.prefix, host.env.get("CONDA_PREFIX", ""))
            if folder
        ),
    )


def _has_pip(host: Host, patient: Patient) -> bool:
    return any(exists(host, f"{folder}/pip/__init__.py") for folder in patient.sys_path if folder)


# ---- toolkits that are elsewhere ---------------------------------------------------------------


def _toolkit(host: Host, root: str, source: str) -> Toolkit | None:
    nvcc = f"{root}/bin/nvcc"
    if not exists(host, nvcc):
        return None
    try:
        version = parse_nvcc(host.run([nvcc, "--version"]).text)
    except HostError:
        return None
    return Toolkit(
        root=root,
        source=source,
        nvcc=nvcc,
        version=version,
        missing_headers=missing_headers(host, root),
        has_cudart=has_library(host, root, "libcudart.so"),
        has_curand=has_library(host, root, "libcurand.so"),
    )


def own_roots(host: Host, base: str) -> Iterator[str]:
    """Roots of toolkits that an earlier fix installed below a folder."""
    for pattern in ("cuda-*/bin/nvcc", "cuda-*/nvidia/cu*/bin/nvcc"):
        for nvcc in matches(host, f"{base}/{pattern}"):
            yield posixpath.dirname(posixpath.dirname(nvcc))
    for nvcc in matches(host, f"{base}/cuda-*/.pixi/envs/default/bin/nvcc"):
        yield posixpath.dirname(posixpath.dirname(nvcc))


@probe
def other_toolkits(host: Host, patient: Patient, request: FixRequest) -> OtherToolkits:
    """Earlier fixes, other conda environments, environment modules; and versions of gcc."""
    found: dict[str, Toolkit] = {}
    for base in (f"{patient.prefix}/opt/dsdoctor", request.state):
        for root in own_roots(host, base):
            # conda keeps its headers elsewhere, see `_routes.conda`
            by_conda = exists(host, f"{root}/conda-meta")
            if toolkit := _toolkit(host, root, "dsdoctor-conda" if by_conda else "dsdoctor"):
                found.setdefault(root, toolkit)
    for place in conda_environments(host):
        if place not in found and (toolkit := _toolkit(host, place, "conda")):
            found[place] = toolkit
    modules = Modules(host)
    for name, root in modules.roots():
        if root not in found and (toolkit := _toolkit(host, root, name)):
            found[root] = toolkit
    gccs = tuple(
        major for major in range(7, 20) if host.which(f"gcc-{major}") and host.which(f"g++-{major}")
    )
    return OtherToolkits(
        found=tuple(found.values()), gccs=gccs, gccs_elsewhere=tuple(_gccs_elsewhere(host, modules))
    )


def _gccs_elsewhere(host: Host, modules: Modules) -> Iterator[InstalledGcc]:
    """The software collections of Red Hat's distributions, and environment modules."""
    for cxx in matches(host, "/opt/rh/*/root/usr/bin/g++"):
        if gcc := _gcc(host, posixpath.dirname(cxx), cxx.split("/")[3]):
            yield gcc
    for name, folders in modules.folders(GCC):
        for folder in folders:
            if gcc := _gcc(host, folder, name):
                libraries = posixpath.join(posixpath.dirname(folder), "lib64")
                carries = exists(host, f"{libraries}/libstdc++.so.6")
                yield msgspec.structs.replace(gcc, libraries=libraries if carries else None)


def _gcc(host: Host, folder: str, source: str) -> InstalledGcc | None:
    cc, cxx = f"{folder}/gcc", f"{folder}/g++"
    if not exists(host, cc) or not exists(host, cxx):
        return None
    found = compiler(host, cxx)
    if found.kind != "gcc" or found.major is None:
        return None
    return InstalledGcc(major=found.major, cc=cc, cxx=cxx, source=source)


# ---- files -------------------------------------------------------------------------------------


@probe
def repair_files(host: Host, run: RunNeeds) -> RepairFiles:
    """Texts of the config, the hostfile and the launcher's file of variables."""
    home = home_folder(host)
    name = host.env.get("DS_ENV_FILE") or ".deepspeed_env"
    places: dict[str, list[str]] = {
        "config": [run.config_path] if run.config_path else [],
        "hostfile": [run.hostfile or DEFAULT_HOSTFILE],
        "deepspeed-env": [f"{home}/{name}", posixpath.join(run.cwd, name)],
    }
    texts: dict[str, tuple[str, str]] = {}
    for what, paths in places.items():
        for path in paths:
            full = path if path.startswith("/") else posixpath.join(run.cwd, path)
            with contextlib.suppress(HostError, UnicodeDecodeError):
                texts.setdefault(what, (full, host.read(full).decode("utf-8")))
    return RepairFiles(texts=texts)


@probe
def free_port(host: Host, port: MasterPort) -> FreePort:
    """The first free port above the job's."""
    for number in range(port.port + 1, min(port.port + 200, 65536)):
        if host.connect("127.0.0.1", number, 0.5) is not None:
            return FreePort(port=number)
    raise HostError(Why.ABSENT, f"no port up to {port.port + 199} is free")


def torch_of_build(text: str) -> str | None:
    r"""The torch that a `build.ninja` was written for.

    >>> torch_of_build("common = -isystem /e/lib/python3.11/site-packages/torch/include -x")
    '/e/lib/python3.11/site-packages/torch'
    """
    found = re.search(r"(?:-isystem |-I)(\S+/torch)/include(?:\s|$)", text)
    return found[1] if found else None


@probe
def stale_builds(host: Host, cache: ExtensionCache, torch: TorchBuild) -> StaleBuilds:
    """Built ops whose torch was removed or replaced since."""
    folders: dict[str, str] = {}
    held: list[str] = []
    processes = list(host.query("processes"))
    depth = "*" if cache.from_env else "*/*"
    for recipe in matches(host, f"{cache.root}/{depth}/build.ninja"):
        folder = posixpath.dirname(recipe)
        try:
            built_for = torch_of_build(read_text(host, recipe))
            libraries = [host.stat(path).mtime for path in host.glob(f"{folder}/*.so")]
        except HostError:
            continue
        if built_for is None:
            continue
        why = ""
        if not exists(host, built_for):
            why = f"it was built with the torch of `{built_for}`, which has been removed"
        elif built_for == torch.path and libraries:
            with contextlib.suppress(HostError):
                if host.stat(f"{torch.path}/version.py").mtime > max(libraries):
                    why = f"torch was replaced by {torch.version} after it was built"
        if why:
            locked = torch.waits_for_lock_files and exists(host, f"{folder}/lock")
            if locked or builders_in(folder, processes):
                held.append(folder)
            else:
                folders[folder] = why
    return StaleBuilds(folders=folders, held=tuple(held))
