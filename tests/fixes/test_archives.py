"""NVIDIA's redistributable archives, from a mirror that the test makes."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import re
import shlex
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.fixes import archives
from dsdoctor.fixes.archives import COMPONENTS
from dsdoctor.fixes.downloads import vouch_for
from dsdoctor.host import HostError
from tests.fixes.fakes import Machine
from tests.support.command import dsdoctor
from tests.support.patient import tree

pytestmark = pytest.mark.system
FIX = ("fix", "--install-cuda-toolkit", "--yes")
PARTS = [name for name in COMPONENTS if name not in ("cuda_crt", "libnvvm")]


class Mirror:
    """Serves a manifest and archives.

    Attributes:
        url: of the folder.
        files: path to content.
        cut: paths of which only the first half is sent.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        #: The environment of whoever vouches for the manifest.
        self.vouched: dict[str, str] = {}
        mirror = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.removeprefix("/redist/")
                mirror.asked.append(name)
                content = mirror.files.get(name)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if name in mirror.cut else content)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/redist"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, toolkit: Path, platform: str = "linux-x86_64") -> None:
        """Archives of a toolkit: nvcc in its own, all headers in another, the runtime in a third."""
        manifest: dict[str, Any] = {"release_date": "2024-01-01"}
        shares = {"cuda_nvcc": ["bin"], "cuda_cudart": ["lib"], "cuda_cccl": ["include"]}
        for component in PARTS:
            data = io.BytesIO()
            top = f"{component}-linux-x86_64-12.3-archive"
            with tarfile.open(fileobj=data, mode="w:xz") as archive:
                for folder in shares.get(component, []):
                    archive.add(toolkit / folder, f"{top}/{folder}")
                info = tarfile.TarInfo(f"{top}/LICENSE")
                info.size = 4
                archive.addfile(info, io.BytesIO(b"EULA"))
            path = f"{component}/{platform}/{top}.tar.xz"
            self.files[path] = data.getvalue()
            manifest[component] = {
                "name": component,
                "version": "12.3.1",
                platform: {
                    "relative_path": path,
                    "sha256": hashlib.sha256(data.getvalue()).hexdigest(),
                    "size": str(len(data.getvalue())),
                },
            }
        self.manifest(manifest)

    def manifest(self, value: dict[str, Any] | None = None) -> dict[str, Any]:
        name = "redistrib_12.3.2.json"
        if value is not None:
            self.files[name] = json.dumps(value).encode()
            self.vouched.update(
                DSDOCTOR_CUDA_ARCHIVES_SHA256=hashlib.sha256(self.files[name]).hexdigest()
            )
        found = json.loads(self.files[name])
        assert isinstance(found, dict)
        return found

    def path_of(self, component: str) -> str:
        return next(name for name in self.files if name.startswith(f"{component}/"))


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def machine(tmp_path: Path, mirror: Mirror) -> Machine:
    made = Machine(tmp_path)
    mirror.vouched = made.env
    mirror.add(made.toolkit(tmp_path / "made"))
    made.env["DSDOCTOR_CUDA_ARCHIVES"] = mirror.url
    return made


def test_installs_compiles_and_undoes(machine: Machine, mirror: Mirror) -> None:
    before = tree(machine.patient)
    shown = dsdoctor("fix", "--install-cuda-toolkit", "--format", "json", env=machine.env)
    assert shown.status == 4
    listed = [step["fetch"] for step in shown.report["steps"] if step["do"] == "fetch"]
    assert listed == [f"{mirror.url}/{mirror.path_of(part)}" for part in PARTS]
    assert [name for name in mirror.asked if name.endswith("xz")] == []  # only planned
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 0, done.err
    assert "applied and proven" in done.err
    prefix = machine.patient / "opt/dsdoctor/cuda-12.3"
    assert (prefix / "bin/nvcc").stat().st_mode & 0o111
    assert (prefix / "lib64").readlink() == Path("lib")
    assert not list(prefix.glob(".dsdoctor*"))
    again = dsdoctor(*FIX, env=machine.env)
    assert again.status == 0
    assert "nothing to do" in again.err
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0
    assert tree(machine.patient) == before


def test_a_wrong_checksum(machine: Machine, mirror: Mirror) -> None:
    before = tree(machine.patient)
    manifest = mirror.manifest()
    manifest["libcurand"]["linux-x86_64"]["sha256"] = "0" * 64
    mirror.manifest(manifest)
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert "but the manifest says 0000000000000000; nothing was unpacked" in done.err
    assert tree(machine.patient) == before


def test_a_download_that_is_cut_off(machine: Machine, mirror: Mirror) -> None:
    before = tree(machine.patient)
    mirror.cut.add(mirror.path_of("cuda_cccl"))
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert "was cut off" in done.err
    assert "everything was restored" in done.err
    assert tree(machine.patient) == before


def test_an_archive_that_is_gone(machine: Machine, mirror: Mirror) -> None:
    before = tree(machine.patient)
    del mirror.files[mirror.path_of("libcublas")]
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert "answers 404" in done.err
    assert tree(machine.patient) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html>login</html>", "is not a manifest of archives"),
        (b'{"cuda_nvcc": []}', "is not a manifest of archives"),
        (b"{}", "has no cuda_nvcc"),
        (None, "answers 404"),
    ],
)
def test_a_manifest_that_is_none(
    machine: Machine, mirror: Mirror, content: bytes | None, words: str
) -> None:
    if content is None:
        del mirror.files["redistrib_12.3.2.json"]
    else:
        mirror.files["redistrib_12.3.2.json"] = content
        digest = hashlib.sha256(mirror.files["redistrib_12.3.2.json"]).hexdigest()
        machine.env["DSDOCTOR_CUDA_ARCHIVES_SHA256"] = digest
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_manifest_may_not_lead_elsewhere(machine: Machine, mirror: Mirror) -> None:
    manifest = mirror.manifest()
    manifest["cuda_nvcc"]["linux-x86_64"]["relative_path"] = "../../etc/x.tar.xz"
    mirror.manifest(manifest)
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert "is not a path below the mirror" in done.err


FETCH = Path(__file__).parent.parent.parent / "dsdoctor" / "probes" / "children" / "fetch.py"


def fetch(mirror: Mirror, content: bytes, into: Path) -> subprocess.CompletedProcess[str]:
    mirror.files["x.tar"] = content
    argv = [sys.executable, "-I", str(FETCH), f"{mirror.url}/x.tar"]
    argv += [hashlib.sha256(content).hexdigest(), str(into), str(len(content))]
    return subprocess.run(argv, capture_output=True, text=True, timeout=500, check=False)


def archive(*members: tarfile.TarInfo) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as made:
        for member in members:
            made.addfile(member, io.BytesIO(b"x" * member.size))
    return data.getvalue()


def link(name: str, target: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = tarfile.SYMTYPE, target
    return made


def test_an_archive_stays_in_its_folder(tmp_path: Path, mirror: Mirror) -> None:
    up = tarfile.TarInfo("top/../../evil")
    for content, words in (
        (archive(up), "outside its folder"),
        (archive(link("top/l", "/etc")), "links `top/l` to `/etc`"),
        (archive(link("top/l", "../../x")), "links `top/l`"),
        (b"no archive at all", "is not an archive"),
    ):
        done = fetch(mirror, content, tmp_path / "into")
        assert done.returncode == 1
        assert words in done.stderr
    assert not (tmp_path / "evil").exists()
    good = fetch(
        mirror, archive(tarfile.TarInfo("top/a/b"), link("top/a/c", "../a/b")), tmp_path / "into"
    )
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "into" / "a" / "c").exists()


def small_disk(folder: Path) -> tuple[str, str]:
    """Shell words in front of a command that give it little room, and what it must then say."""
    # a file system of its own, of 1 MiB, that ends with the command
    mount = f'unshare -rm sh -c \'mount -t tmpfs -o size=1m tmpfs {folder} && exec "$0" "$@"\''
    trial = ["/bin/sh", "-c", f"{mount} true"]
    if subprocess.run(trial, check=False, capture_output=True, timeout=500).returncode == 0:
        return mount, "the disk is full"
    return "ulimit -f 64; exec", "may not grow that large"


@pytest.mark.parametrize("way", ["small file system", "limit on files"])
def test_a_full_disk(tmp_path: Path, mirror: Mirror, way: str) -> None:
    small = tmp_path / "small"
    small.mkdir()
    before, words = small_disk(small)
    if way == "limit on files":
        before, words = "ulimit -f 64; exec", "may not grow that large"
    content = archive(big())
    mirror.files["x.tar"] = content
    argv = [sys.executable, "-I", str(FETCH), f"{mirror.url}/x.tar"]
    argv += [hashlib.sha256(content).hexdigest(), str(small), str(len(content))]
    left = f"ls -A {shlex.quote(str(small))} >&2"
    script = f'{shlex.join(argv)}; echo "status $?" >&2; {left}'
    done = subprocess.run(
        ["/bin/sh", "-c", f"{before} sh -c {shlex.quote(script)}"],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    said, *rest = done.stderr.splitlines()
    assert words in said
    assert rest == ["status 1"]  # and nothing is left in the folder


def big() -> tarfile.TarInfo:
    made = tarfile.TarInfo("top/big")
    made.size = 4 << 20
    return made


def test_a_manifest_that_nobody_vouches_for_is_not_believed(
    machine: Machine, mirror: Mirror
) -> None:
    """Whoever can write to the mirror could name any archive, with its checksum."""
    del machine.env["DSDOCTOR_CUDA_ARCHIVES_SHA256"]
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert "NVIDIA's manifest for CUDA 12.3.2 has 1b6eacf335dd" in done.err
    assert [name for name in mirror.asked if name.endswith("xz")] == []
    machine.env["DSDOCTOR_CUDA_ARCHIVES_SHA256"] = "0" * 64
    done = dsdoctor(*FIX, env=machine.env)
    assert done.status == 1
    assert f"is {'0' * 64}" in done.err


def test_every_release_that_is_asked_for_is_pinned() -> None:
    pinned = {**archives.MANIFEST_SHA256, **archives.CONTENT_SHA256}
    assert set(archives.LAST_UPDATE.values()) <= pinned.keys()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in pinned.values())
    assert len(set(pinned.values())) == len(pinned)
    assert not archives.MANIFEST_SHA256.keys() & archives.CONTENT_SHA256.keys()


def accepted(manifest: bytes, release: str, given: str = "") -> bool:
    try:
        vouch_for(manifest, release, given, "https://site/m.json")
    except HostError:
        return False
    return True


def test_a_manifest_counts_by_our_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also NVIDIA's own site is not asked which bytes are right."""
    ours = b'{"a": 1, "b": {"c": "d"}}'
    digest = hashlib.sha256(ours).hexdigest()
    monkeypatch.setitem(archives.MANIFEST_SHA256, "12.3.2", digest)
    monkeypatch.setitem(archives.CONTENT_SHA256, "11.7.1", archives.content_sha256(ours))
    assert accepted(ours, "12.3.2")
    assert not accepted(ours + b"\n", "12.3.2"), "of this one the bytes are known"
    assert not accepted(ours, "12.4.1"), "the manifest of another release"
    assert not accepted(ours, "14.0.0"), "a release that nobody knows"
    assert accepted(ours, "14.0.0", digest)
    assert accepted(ours + b"\n", "12.3.2", hashlib.sha256(ours + b"\n").hexdigest().upper())
    assert not accepted(ours, "12.3.2", "0" * 64), "what is asked for goes before the table"
    assert accepted(b'{"b": {"c": "d"},\n\n "a": 1}\n', "11.7.1")
    for other in (b'{"a": 2, "b": {"c": "d"}}', b"not JSON", b"[" * 100_000, b""):
        assert not accepted(other, "11.7.1")
