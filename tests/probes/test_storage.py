"""The probe of places: on this machine, on a simulated one, and on a mount that hangs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from msgspec import structs

from dsdoctor.api import Missing, RunNeeds, Storage
from dsdoctor.host import DiskUsage, HostError, LocalHost, RecordingHost, ReplayHost, Stat
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.run import Floors
from dsdoctor.probes.storage import storage
from dsdoctor.testing import FakeHost

MOUNTS = (
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "40 22 0:40 / /home rw,nosuid,noexec - nfs4 nas:/home rw\n"
    "41 22 0:41 / /data ro - squashfs /dev/loop0 ro\n"
)


def fake(**more: object) -> FakeHost:
    fields: dict[str, object] = {
        "env": {"HOME": "/home/me", "TRITON_CACHE_DIR": "/scratch/triton"},
        "files": {"/proc/self/mountinfo": MOUNTS, "/home/me/x": "", "/data/set/a": "1"},
        "queries": {"home": "/home/me", "cwd": "/home/me", "executable": "/usr/bin/python3"},
        "stats": {"/": Stat(kind="dir"), "/tmp": Stat(kind="dir")},
        "disks": {"/home/me": DiskUsage(total=100, free=7, inodes_total=50, inodes_free=3)},
    }
    return FakeHost(**{**fields, **more})  # type: ignore[arg-type]


def by_purpose(fact: Storage) -> dict[str, object]:
    return {place.purpose: place for place in fact.places}


def test_defaults_variables_and_mounts() -> None:
    fact = storage.function(fake(), RunNeeds(paths=("/data/set",), cwd="/home/me"))
    places = by_purpose(fact)
    triton, built, data = (
        places["Triton cache"],
        places["built extensions"],
        places["--path"],
    )
    assert (triton.path, triton.variable) == ("/scratch/triton", "TRITON_CACHE_DIR")  # type: ignore[attr-defined]
    assert triton.file_system == "ext4"  # type: ignore[attr-defined]
    assert built.path == "/home/me/.cache/torch_extensions"  # type: ignore[attr-defined]
    assert (built.network, built.mount, built.parent) == (True, "/home", "/home/me")  # type: ignore[attr-defined]
    assert (built.noexec, triton.noexec) == (True, False)  # type: ignore[attr-defined]
    assert (built.free_bytes, built.inodes_free) == (7, 3)  # type: ignore[attr-defined]
    assert (data.kind, data.file_system, data.network) == ("dir", "squashfs", False)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        pytest.param("/home/me", ["/home/me"], id="it exists"),
        pytest.param("~/tmp", ["~/tmp", "/tmp"], id="it does not, and /tmp is used"),
        pytest.param(None, ["/tmp"], id="it is not set"),
    ],
)
def test_where_temporary_files_go(value: str | None, paths: list[str]) -> None:
    env = {"HOME": "/home/me"} | ({"TMPDIR": value} if value else {})
    fact = storage.function(fake(env=env), RunNeeds(cwd="/home/me"))
    assert [one.path for one in fact.places if one.purpose == "temporary files"] == paths


def test_a_mount_that_hangs_is_said_so() -> None:
    dead = HostError(Why.TIMEOUT, "`/dead` is on a nfs mount that did not answer within 5 s")
    fact = storage.function(fake(stats={"/dead": dead}), RunNeeds(paths=("/dead",)))
    place = fact.places[0]
    assert place.hung
    assert "did not answer" in (place.error or "")


def test_windows_is_not_looked_at() -> None:
    with pytest.raises(HostError):
        storage.function(fake(system="Windows"), RunNeeds())


def test_the_disk_of_a_profile_is_where_the_job_starts() -> None:
    floors = Floors(name="p", disk_gib=50)
    fact = storage.function(fake(), RunNeeds(floors=floors, cwd="/home/me"))
    assert fact.places[0].free_bytes == 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts of Linux")
def without_free(fact: Storage) -> Storage:
    places = tuple(structs.replace(one, free_bytes=None, inodes_free=None) for one in fact.places)
    return structs.replace(fact, places=places)


def test_this_machine_and_its_recording(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("1")
    run = RunNeeds(
        paths=("data", "nothing"), writable=(str(tmp_path / "new" / "out"),), cwd=str(tmp_path)
    )
    live = RecordingHost(LocalHost())
    fact = storage.function(live, run)
    data, nothing, out = fact.places[:3]
    assert (data.kind, data.empty, data.error) == ("dir", False, None)
    assert (nothing.kind, nothing.parent) == (None, str(tmp_path))
    assert (out.tried, out.trial_error, out.kind) == (True, None, None)
    assert not list(tmp_path.rglob(".dsdoctor*")), "the trial left nothing behind"
    assert data.free_bytes
    assert data.file_system
    again = storage.function(ReplayHost(live.dump()), run)
    # a disk is asked for each of its places, and others write to it in between
    assert without_free(again) == without_free(fact)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc refuses new files")
def test_a_folder_that_refuses_to_be_written(tmp_path: Path) -> None:
    fact = storage.function(LocalHost(), RunNeeds(writable=("/proc",)))
    assert fact.places[0].trial_error == os.strerror(2)


def test_missing_quota_program_is_no_error() -> None:
    fact = storage.function(fake(), RunNeeds())
    assert not isinstance(fact, Missing)
    assert fact.quotas == ()
