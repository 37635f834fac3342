"""Reads what only fixes need: package managers, toolkits elsewhere, wheels, archives, files.

No other command runs these: some of them ask an index or a mirror.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    ExtensionCache,
    FixRequest,
    Missing,
    OsInfo,
    Packages,
    Patient,
    Probe,
    RunNeeds,
    Toolkit,
    TorchBuild,
    Why,
    probe,
)
from dsdoctor.fixes.archives import BASE_URL, COMPONENTS, last_release, platform_of
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.model.facts.launch import MasterPort
from dsdoctor.model.facts.repair import (
    Archive,
    FreePort,
    OtherToolkits,
    PackageManagers,
    RepairFiles,
    StaleBuilds,
    ToolkitArchives,
    ToolkitWheels,
    Wheel,
)
from dsdoctor.patient import CHILDREN
from dsdoctor.probes.launch import DEFAULT_HOSTFILE
from dsdoctor.probes.toolchain import builders_in, missing_headers, parse_nvcc

CONDA_KINDS = ("mamba", "micromamba", "conda", "pixi")
#: Extras of the metapackage that a toolkit for DeepSpeed needs. nvcc's own requirements name
#: `nvidia-nvvm` and `nvidia-cuda-crt` without a version: left to themselves they are the newest.
EXTRAS = "nvcc,crt,nvvm,cccl,cudart,cublas,cusparse,cusolver,curand,nvjitlink"
INDEX_SECONDS = 150.0
SYSTEM_SECONDS = 60.0


def probes() -> tuple[Probe, ...]:
    """All of them."""
    return tuple(value for value in globals().values() if isinstance(value, Probe))


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
    """What could install something, and what the system's package manager has."""
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


# ---- toolkits that lie elsewhere ---------------------------------------------------------------


def _toolkit(host: Host, root: str, source: str) -> Toolkit | None:
    nvcc = f"{root}/bin/nvcc"
    if not exists(host, nvcc):
        return None
    try:
        version = parse_nvcc(host.run([nvcc, "--version"]).text)
    except HostError:
        return None
    patterns = (f"{root}/lib64/libcudart.so", f"{root}/lib/libcudart.so")
    return Toolkit(
        root=root,
        source=source,
        nvcc=nvcc,
        version=version,
        missing_headers=missing_headers(host, root),
        has_cudart=any(exists(host, path) for path in patterns),
    )


def parse_modules(text: str) -> list[str]:
    r"""Names of CUDA modules in the output of `module -t avail`.

    >>> parse_modules("/opt/modules:\ncuda/12.4(default)\ngcc/13\nnvhpc/24\nCUDA/11.8.0\n")
    ['cuda/12.4', 'CUDA/11.8.0']
    """
    found = [line.strip().split("(")[0].rstrip("/") for line in text.splitlines()]
    return [name for name in found if re.fullmatch(r"(?i)cuda(?:-?toolkit)?/[\w.+-]+", name)]


def _modules(host: Host) -> Iterator[Toolkit]:
    command = host.env.get("LMOD_CMD") or host.env.get("MODULES_CMD") or host.which("modulecmd")
    if not command:
        return
    try:
        listed = host.run([command, "bash", "-t", "avail"], timeout=SYSTEM_SECONDS)
    except HostError:
        return
    for name in parse_modules((listed.stdout + listed.stderr).decode("utf-8", "replace"))[:20]:
        try:
            text = host.run([command, "python", "load", name], timeout=SYSTEM_SECONDS).text
        except HostError:
            continue
        home = re.search(
            r"""environ\[['"](?:CUDA_HOME|CUDA_PATH|CUDA_ROOT|EBROOTCUDA)['"]\]\s*=\s*['"]([^'"]+)""",
            text,
        )
        if home and (found := _toolkit(host, home[1].rstrip("/"), name)):
            yield found


def _glob(host: Host, pattern: str) -> list[str]:
    try:
        return host.glob(pattern)
    except HostError:
        return []


def own_roots(host: Host, base: str) -> Iterator[str]:
    """Roots of toolkits that an earlier fix installed below a folder."""
    for pattern in ("cuda-*/bin/nvcc", "cuda-*/nvidia/cu*/bin/nvcc"):
        for nvcc in _glob(host, f"{base}/{pattern}"):
            yield posixpath.dirname(posixpath.dirname(nvcc))
    for nvcc in _glob(host, f"{base}/cuda-*/.pixi/envs/default/bin/nvcc"):
        yield posixpath.dirname(posixpath.dirname(nvcc))


@probe
def other_toolkits(host: Host, patient: Patient, request: FixRequest) -> OtherToolkits:
    """Earlier repairs, other conda environments, environment modules; and versions of gcc."""
    found: dict[str, Toolkit] = {}
    for base in (f"{patient.prefix}/opt/dsdoctor", request.state):
        for root in own_roots(host, base):
            # conda keeps its headers elsewhere, see `_routes.conda`
            by_conda = exists(host, f"{root}/conda-meta")
            if toolkit := _toolkit(host, root, "dsdoctor-conda" if by_conda else "dsdoctor"):
                found.setdefault(root, toolkit)
    places: list[str] = []
    with contextlib.suppress(HostError):
        home = host.env.get("HOME") or str(host.query("home"))
        places = read_text(host, f"{home}/.conda/environments.txt").split("\n")
    for place in [line.strip() for line in places if line.strip()]:
        if place not in found and (toolkit := _toolkit(host, place, "conda")):
            found[place] = toolkit
    for toolkit in _modules(host):
        found.setdefault(toolkit.root, toolkit)
    gccs = tuple(
        major for major in range(7, 20) if host.which(f"gcc-{major}") and host.which(f"g++-{major}")
    )
    return OtherToolkits(found=tuple(found.values()), gccs=gccs)


# ---- wheels and archives -----------------------------------------------------------------------


def pinned_release(requirements: tuple[str, ...], cuda: str) -> str:
    """The version of `cuda-toolkit` that torch pins; without a pin the last of its CUDA.

    >>> pinned_release(('cuda-toolkit[cublas,cudart]==13.0.2; platform_system == "Linux"',), "13.0")
    '13.0.2'
    >>> pinned_release((), "13.0")
    '13.0.*'
    """
    for line in requirements:
        found = re.match(r"cuda[-_]toolkit\s*(?:\[[^\]]*\])?\s*\(?==\s*([\d.]+)", line)
        if found:
            return found[1]
    return f"{cuda}.*"


def read_pip_report(text: str) -> tuple[str, tuple[Wheel, ...]]:
    """Version of the metapackage, and the wheels, in what `pip install --report -` prints.

    Raises:
        ValueError: it is no such report.
    """
    try:
        rows = json.loads(text)["install"]
        wheels = [
            Wheel(
                name=re.sub(r"[-_.]+", "-", row["metadata"]["name"]).lower(),
                version=row["metadata"]["version"],
            )
            for row in rows
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f"`{error}` is not in pip's report") from None
    meta = next((wheel.version for wheel in wheels if wheel.name == "cuda-toolkit"), "")
    parts = sorted((w for w in wheels if w.name.startswith("nvidia-")), key=lambda w: w.name)
    return meta, tuple(parts)


@probe
def toolkit_wheels(
    host: Host,
    patient: Patient,
    packages: Packages,
    torch: TorchBuild,
    managers: PackageManagers,
    request: FixRequest,
) -> ToolkitWheels:
    """What pip would install for torch's CUDA; asks the index, installs nothing."""
    major = int((torch.cuda or "0").split(".")[0])
    if major < 13:  # noqa: PLR2004  # nvidia-cuda-nvcc-cu12 holds no nvcc (knowledge A8)
        raise HostError(Why.UNSUPPORTED, f"pip has no nvcc for CUDA {torch.cuda}")
    if (managers.conda and not request.in_place) or not managers.pip:
        why = "conda serves" if managers.conda else f"`{patient.executable}` has no pip"
        raise HostError(Why.NOT_ASKED, why)
    release = pinned_release(packages.requires.get("torch", ()), str(torch.cuda))
    argv = [patient.executable, "-m", "pip", "install", "--quiet", "--no-input", "--dry-run"]
    argv += ["--ignore-installed", "--report", "-", f"cuda-toolkit[{EXTRAS}]=={release}"]
    result = host.run(argv, timeout=INDEX_SECONDS, env={"PIP_USER": "0"})
    if result.timed_out:
        raise HostError(Why.TIMEOUT, f"pip did not answer within {INDEX_SECONDS:g} s")
    if not result.ok:
        raise HostError(Why.BROKEN, f"pip cannot resolve `{argv[-1]}`: {result.error_text}")
    try:
        meta, wheels = read_pip_report(result.text)
    except ValueError as error:
        raise HostError(Why.BROKEN, f"pip's report cannot be read: {error}") from None
    lacking = tuple(w for w in wheels if packages.version(w.name) != w.version)
    present = None
    for name in [w.name for w in wheels if w not in lacking]:
        place = f"{packages.packages[name].location}/nvidia/cu{major}"
        if exists(host, place):
            present = place
    return ToolkitWheels(release=meta or release, lacking=lacking, present=present)


@probe
def toolkit_archives(
    host: Host, torch: TorchBuild, system: OsInfo, managers: PackageManagers
) -> ToolkitArchives:
    """What NVIDIA's manifest lists for torch's CUDA; fetches the manifest alone."""
    if not torch.cuda:
        raise HostError(Why.UNSUPPORTED, "torch is no CUDA build")
    if managers.conda:
        raise HostError(Why.NOT_ASKED, "conda serves")
    base = (host.env.get("DSDOCTOR_CUDA_ARCHIVES") or BASE_URL).rstrip("/")
    release = last_release(torch.cuda)
    url = f"{base}/redistrib_{release}.json"
    executable = str(host.query("executable"))
    argv = [executable, "-I", str(CHILDREN / "fetch.py"), url, "-", "-", "0"]
    result = host.run(argv, timeout=INDEX_SECONDS)
    if not result.ok:
        words = result.error_text or f"`{url}` did not answer within {INDEX_SECONDS:g} s"
        raise HostError(Why.ABSENT, words)
    return read_manifest(result.text, base, url, release, platform_of(system.machine))


def _below(relative: str) -> str:
    if relative.startswith("/") or ".." in relative.split("/") or "://" in relative:
        raise ValueError(f"`{relative}` is no path below the mirror")
    return relative


def read_manifest(text: str, base: str, url: str, release: str, platform: str) -> ToolkitArchives:
    """The archives of a manifest.

    Raises:
        HostError: it is none.
    """
    try:
        manifest: dict[str, Any] = json.loads(text)
        archives, lacking = [], []
        for component in COMPONENTS:
            entry = manifest.get(component, {}).get(platform)
            if entry is None:
                if component not in ("cuda_crt", "libnvvm"):  # of CUDA 13 on; before, part of nvcc
                    lacking.append(component)
                continue
            archives.append(
                Archive(
                    component=component,
                    url=f"{base}/{_below(str(entry['relative_path']))}",
                    sha256=str(entry["sha256"]),
                    size=int(entry["size"]),
                )
            )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HostError(Why.BROKEN, f"`{url}` is no manifest of archives ({error})") from None
    return ToolkitArchives(
        release=release, manifest=url, archives=tuple(archives), lacking=tuple(lacking)
    )


# ---- files -------------------------------------------------------------------------------------


@probe
def repair_files(host: Host, run: RunNeeds) -> RepairFiles:
    """Texts of the config, the hostfile and the launcher's file of variables."""
    home = host.env.get("HOME") or str(host.query("home"))
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
    """The first port above the job's on which nobody listens."""
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
    """Built ops whose torch is gone or was replaced since."""
    folders: dict[str, str] = {}
    held: list[str] = []
    processes = list(host.query("processes"))
    depth = "*" if cache.from_env else "*/*"
    for recipe in _glob(host, f"{cache.root}/{depth}/build.ninja"):
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
            why = f"it was built with the torch of `{built_for}`, which is gone"
        elif built_for == torch.path and libraries:
            with contextlib.suppress(HostError):
                if host.stat(f"{torch.path}/version.py").mtime > max(libraries):
                    why = f"torch was replaced by {torch.version} after it was built"
        if why:
            if builders_in(folder, processes) or exists(host, f"{folder}/lock"):
                held.append(folder)
            else:
                folders[folder] = why
    return StaleBuilds(folders=folders, held=tuple(held))
