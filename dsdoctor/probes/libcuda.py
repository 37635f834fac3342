"""Finds the libcuda.so.1 that a job would load, and other copies."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator

from dsdoctor.api import LibCuda, Why, probe
from dsdoctor.host import Host, HostError, exists, read_text, real_path
from dsdoctor.probes.nvidia import VERSION, WSL_FOLDER

LIBRARY = "libcuda.so.1"
DEFAULT_FOLDERS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)


def parse_ldconfig(text: str, library: str = LIBRARY) -> list[str]:
    r"""Paths of a library in the output of `ldconfig -p`, the loader's choice first; 64-bit only.

    >>> parse_ldconfig("\tlibcuda.so.1 (libc6,x86-64) => /a/libcuda.so.1\n"
    ...                "\tlibcuda.so.1 (libc6) => /b/libcuda.so.1\n")
    ['/a/libcuda.so.1']
    """
    found = re.findall(r"^\s*(\S+) \(([^)]*)\) => (\S.*?)\s*$", text, re.MULTILINE)
    return [path for name, flags, path in found if name == library and re.search("64", flags)]


def parse_ld_conf(text: str) -> tuple[list[str], list[str]]:
    r"""Folders, and patterns of further files, in /etc/ld.so.conf.

    >>> parse_ld_conf("include ld.so.conf.d/*.conf\n/opt/lib  # ours\n")
    (['/opt/lib'], ['/etc/ld.so.conf.d/*.conf'])
    """
    folders: list[str] = []
    includes: list[str] = []
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        if line.startswith("include "):
            includes.extend(posixpath.join("/etc", name) for name in line.split()[1:])
        elif line.startswith("/"):
            folders.append(line.split("=", 1)[0].strip())
    return folders, includes


def parse_library_version(path: str) -> str | None:
    """Driver version in the name of the file that libcuda.so.1 links to.

    >>> parse_library_version("/usr/lib64/libcuda.so.535.104.05"), parse_library_version("/x.so.1")
    ('535.104.05', None)
    """
    found = re.search(rf"\.so\.({VERSION})$", path)
    return found[1] if found else None


def loader_folders(host: Host) -> list[str]:
    """The folders in the loader's configuration; none if it cannot be read."""
    folders: list[str] = []
    with contextlib.suppress(HostError):
        folders, includes = parse_ld_conf(read_text(host, "/etc/ld.so.conf"))
        for path in (path for pattern in includes for path in host.glob(pattern)):
            with contextlib.suppress(HostError):
                folders.extend(parse_ld_conf(read_text(host, path))[0])
    return folders


def _cached(host: Host) -> list[str]:
    """Paths of the library in the loader's cache; without `ldconfig`, from its configuration."""
    for program in (host.which("ldconfig"), "/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if program is None:
            continue
        with contextlib.suppress(HostError):
            result = host.run([program, "-p"])
            if result.ok:
                return parse_ldconfig(result.text)
    return [posixpath.join(folder, LIBRARY) for folder in loader_folders(host)]


def _candidates(host: Host) -> Iterator[tuple[str, str]]:
    """The files that the loader would consider, in its order, each with the reason."""
    for folder in host.env.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield "LD_LIBRARY_PATH", posixpath.join(folder, LIBRARY)
    for path in _cached(host):
        yield ("wsl" if path.startswith(WSL_FOLDER) else "ld.so.cache"), path
    for folder in DEFAULT_FOLDERS:
        yield "default", posixpath.join(folder, LIBRARY)
    yield "wsl", posixpath.join(WSL_FOLDER, LIBRARY)


@probe
def libcuda(host: Host) -> LibCuda:
    """The libcuda.so.1 that a job would load, and other copies; none is loaded."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"libcuda is not looked for on {host.system}")
    found: dict[str, tuple[str, str]] = {}
    for via, path in _candidates(host):
        if exists(host, path):
            found.setdefault(real_path(host, path), (via, path))
    spare: dict[str, str] = {}
    for pattern in (f"/usr/local/cuda*/compat/{LIBRARY}", f"/usr/local/nvidia/lib64/{LIBRARY}"):
        with contextlib.suppress(HostError):
            for path in host.glob(pattern):
                spare.setdefault(real_path(host, path), path)
    if not found:
        return LibCuda(others=tuple(spare.values()))
    (real, (via, path)), *rest = found.items()
    others = [where for _, (_, where) in rest]
    others += [where for target, where in spare.items() if target not in found]
    parts = {*path.split("/"), *real.split("/")}
    return LibCuda(
        path=path,
        via=via,
        version=parse_library_version(real),
        compat=any(re.fullmatch(r"compat(?:_orig)?|cuda-compat\S*", part) for part in parts),
        stub="stubs" in parts,
        others=tuple(others),
    )
