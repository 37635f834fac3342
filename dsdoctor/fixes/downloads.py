"""Reads which wheels and archives an index or a mirror offers for a toolkit; installs nothing."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from dsdoctor.api import FixRequest, OsInfo, Packages, Patient, TorchBuild, Why, probe
from dsdoctor.fixes.archives import (
    BASE_URL,
    COMPONENTS,
    CONTENT_SHA256,
    MANIFEST_SHA256,
    is_pinned,
    last_release,
    platform_of,
)
from dsdoctor.host import Host, HostError, exists
from dsdoctor.interpreter import CHILDREN
from dsdoctor.model.facts.repair import (
    Archive,
    PackageManagers,
    ToolkitArchives,
    ToolkitWheels,
    Wheel,
)

#: Extras of the metapackage that a toolkit for DeepSpeed needs. nvcc's own requirements list
#: `nvidia-nvvm` and `nvidia-cuda-crt` without a version: unpinned, they would be the newest.
EXTRAS = "nvcc,crt,nvvm,cccl,cudart,cublas,cusparse,cusolver,curand,nvjitlink,profiler"
INDEX_SECONDS = 150.0
#: A requirement that is safe as an argument of pip.
_REQUIREMENT = re.compile(r"[a-z0-9][a-z0-9-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*")


def pinned_release(requirements: tuple[str, ...], cuda: str) -> str:
    """The version of `cuda-toolkit` that torch pins; without a pin, the last for its CUDA version.

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
        ValueError: it is not a report of pip.
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
    if odd := [wheel.spec for wheel in wheels if not _REQUIREMENT.fullmatch(wheel.spec)]:
        raise ValueError(f"`{odd[0]}` is not a package")
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
    """What pip would install for torch's CUDA; queries the index, installs nothing."""
    major = int((torch.cuda or "0").split(".")[0])
    if major < 13:  # noqa: PLR2004  # nvidia-cuda-nvcc-cu12 has no nvcc
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
    """What NVIDIA's manifest lists for torch's CUDA; fetches only the manifest."""
    if not torch.cuda:
        raise HostError(Why.UNSUPPORTED, "torch is not a CUDA build")
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
    vouch_for(result.stdout, release, host.env.get("DSDOCTOR_CUDA_ARCHIVES_SHA256", ""), url)
    return read_manifest(result.text, base, url, release, platform_of(system.machine))


def vouch_for(manifest: bytes, release: str, given: str, url: str) -> None:
    """Accepts a manifest, which contains the checksums of the archives, only by its own checksum.

    Whoever can write to the site that it comes from could list any archive with its checksum.

    Args:
        manifest: the content that was fetched.
        release: the release that was requested.
        given: SHA-256 that the user passed instead of the pinned ones; "" if none.
        url: where it was fetched from.

    Raises:
        HostError: its checksum is not known, or differs.
    """
    found = hashlib.sha256(manifest).hexdigest()
    if found == given.strip().lower() or (not given and is_pinned(manifest, release)):
        return
    known = MANIFEST_SHA256.get(release) or (release in CONTENT_SHA256 and "another content")
    if given:
        expected = f"`DSDOCTOR_CUDA_ARCHIVES_SHA256` is {given}"
    elif known:
        expected = f"NVIDIA's manifest for CUDA {release} has {known}"
    else:
        expected = f"dsdoctor knows none for CUDA {release}"
    raise HostError(
        Why.DENIED,
        f"the manifest `{url}` has the SHA-256 {found}, but {expected}; if you have verified it "
        f"elsewhere, set `DSDOCTOR_CUDA_ARCHIVES_SHA256={found}`",
    )


def _below(relative: str) -> str:
    if relative.startswith("/") or ".." in relative.split("/") or "://" in relative:
        raise ValueError(f"`{relative}` is not a path below the mirror")
    return relative


def read_manifest(text: str, base: str, url: str, release: str, platform: str) -> ToolkitArchives:
    """The archives of a manifest.

    Raises:
        HostError: it is not a manifest.
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
        raise HostError(Why.BROKEN, f"`{url}` is not a manifest of archives ({error})") from None
    return ToolkitArchives(
        release=release, manifest=url, archives=tuple(archives), lacking=tuple(lacking)
    )
