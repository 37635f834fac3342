"""path_missing, path_not_writable, disk_full, inodes_exhausted, cache_on_network_disk, file_system_hangs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Environment, Hostfile, LaunchCommand, Place, RunNeeds, Storage
from dsdoctor.model.facts.launch import HostEntry
from dsdoctor.testing import judge
from dsdoctor_checks.storage import (
    cache_on_network_disk,
    disk_full,
    file_system_hangs,
    inodes_exhausted,
    path_missing,
    path_not_writable,
)
from tests.checks.machines import ABSENT, ANY, NO_ENV, words

GIB = 1 << 30
MIB = 1 << 20


def place(purpose: str, **more: Any) -> Place:
    fields: dict[str, Any] = {
        "path": "/x",
        "kind": "dir",
        "file_system": "ext4",
        "mount": "/",
        "total_bytes": 1000 * GIB,
        "free_bytes": 500 * GIB,
        "inodes_total": 10**6,
        "inodes_free": 10**5,
    }
    return Place(purpose=purpose, **(fields | more))


def storage(*places: Place) -> Storage:
    return Storage(places=places)


HOME = [
    place("temporary files", path="/tmp"),
    place(
        "built extensions", path="/home/me/.cache/torch_extensions", kind=None, parent="/home/me"
    ),
    place("Triton cache", path="/home/me/.triton/cache", kind=None, parent="/home/me"),
    place("Hugging Face cache", path="/home/me/.cache/huggingface"),
]


def every(fact: Storage, run: RunNeeds = ANY) -> list[str]:
    """Statuses of all checks of places that are not ok."""
    found = [
        *judge(path_missing.paths_are_there, storage=fact, launch_files=ABSENT).findings,
        *judge(path_not_writable.places_can_be_written, storage=fact).findings,
        *judge(disk_full.places_have_room, storage=fact, run_needs=run).findings,
        *judge(inodes_exhausted.files_can_be_made, storage=fact).findings,
        *judge(cache_on_network_disk.builds_are_local, storage=fact, environment=NO_ENV).findings,
        *judge(file_system_hangs.file_systems_answer, storage=fact).findings,
    ]
    return [word for word in words(found) if word != "ok"]


def test_a_usual_machine_is_silent() -> None:
    assert every(storage(*HOME)) == []


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(
            place("Hugging Face cache", path="/models", writable=False, read_only=True),
            id="a cache that is read only",
        ),
        pytest.param(
            place("Triton cache", file_system="nfs4", network=True), id="a cache on a network"
        ),
        pytest.param(
            place(
                "temporary files", total_bytes=256 * MIB, free_bytes=200 * MIB, file_system="tmpfs"
            ),
            id="a small tmpfs",
        ),
        pytest.param(
            place("built extensions", inodes_total=None, inodes_free=None, file_system="btrfs"),
            id="a file system without a number of inodes",
        ),
        pytest.param(place("--path", kind="file"), id="a path that is a file"),
        pytest.param(
            place("--path", read_only=True, writable=False), id="a path that is read only"
        ),
        pytest.param(place("--path", free_bytes=0, inodes_free=0), id="a path on a full disk"),
        pytest.param(
            place("--writable", kind=None, parent="/", tried=True),
            id="a folder that does not exist yet",
        ),
        pytest.param(place("temporary files", total_bytes=0, free_bytes=0), id="a size of zero"),
    ],
)
def test_odd_but_healthy_places(odd: Place) -> None:
    assert every(storage(odd)) == []


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        pytest.param(
            place("--path", kind=None, parent="/data"), ["fail"], id="a path that does not exist"
        ),
        pytest.param(place("--path", empty=True), ["warn"], id="an empty folder"),
        pytest.param(
            place("--path", error="`/x` may not be read by this user"),
            ["fail"],
            id="a file that this user may not read",
        ),
        pytest.param(
            place("--path", hung=True, error="did not answer"),
            ["fail"],
            id="a file system that does not answer",
        ),
        pytest.param(
            place("--writable", trial_error="Permission denied", tried=True),
            ["fail"],
            id="a trial file cannot be written",
        ),
        pytest.param(
            place("--writable", kind="file"), ["fail"], id="a file where a folder is needed"
        ),
        pytest.param(
            place("NVMe offload", read_only=True),
            ["fail"],
            id="the folder for NVMe offload is on a read-only file system",
        ),
        pytest.param(
            place("Triton cache", path="/.triton/cache", writable=False, parent="/"),
            ["warn"],
            id="Triton's cache would be in the root folder",
        ),
        pytest.param(
            place("--writable", free_bytes=300 * MIB), ["warn"], id="300 MiB are left for output"
        ),
        pytest.param(
            place("temporary files", free_bytes=MIB),
            ["warn"],
            id="1 MiB is left for temporary files",
        ),
        pytest.param(
            place("Triton cache", inodes_free=500),
            ["warn"],
            id="500 inodes are left for Triton's cache",
        ),
        pytest.param(
            place("--writable", inodes_free=0), ["fail"], id="no inode is left for output"
        ),
    ],
)
def test_faults(bad: Place, expected: list[str]) -> None:
    assert every(storage(bad)) == expected


def test_where_a_trainer_saves() -> None:
    full = place("--output_dir", path="out", free_bytes=1 << 20)
    assert every(storage(full)) == ["warn"]
    assert every(storage(place("--output_dir", path="out", read_only=True))) == ["fail"]
    assert every(storage(place("--output_dir", path="out", free_bytes=GIB))) == []


def test_room_for_a_checkpoint_of_the_model() -> None:
    run = RunNeeds(model={"parameters": 7_000_000_000})
    little = storage(place("--writable", free_bytes=50 * GIB))
    (found, _) = judge(disk_full.places_have_room, storage=little, run_needs=run).findings
    assert found.status.value == "fail"
    assert found.evidence["needed_bytes"] == 14 * 7_000_000_000
    assert "91.3 GiB" in found.message
    assert every(storage(place("--writable", free_bytes=92 * GIB)), run) == []


def test_one_disk_is_named_once() -> None:
    full = [
        place(purpose, path=f"/{number}", free_bytes=MIB)
        for number, purpose in enumerate(("temporary files", "built extensions", "Triton cache"))
    ]
    found = judge(disk_full.places_have_room, storage=storage(*full)).findings
    assert words(found) == ["warn", "ok"]
    assert "built extensions" in found[0].message


def test_nvme_offload_of_a_model_needs_room() -> None:
    zero = {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}}
    run = RunNeeds(config={"zero_optimization": zero}, model={"parameters": 10**10})
    assert every(storage(place("NVMe offload", free_bytes=100 * GIB)), run) == ["fail"]
    assert every(storage(place("NVMe offload", free_bytes=120 * GIB)), run) == []
    unknown = msgspec.structs.replace(run, model=None)
    assert every(storage(place("NVMe offload", free_bytes=GIB >> 1)), unknown) == ["warn"]
    assert every(storage(place("NVMe offload", free_bytes=2 * GIB)), unknown) == []


@pytest.mark.parametrize(
    ("env", "command", "hostfile"),
    [
        pytest.param(
            Environment(variables={"SLURM_JOB_NUM_NODES": "4"}),
            ABSENT,
            ABSENT,
            id="Slurm says that the job has four nodes",
        ),
        pytest.param(
            NO_ENV,
            LaunchCommand(launcher="torchrun", num_nodes=2),
            ABSENT,
            id="torchrun is told of two nodes",
        ),
        pytest.param(
            NO_ENV,
            ABSENT,
            Hostfile(
                path="h",
                entries=(
                    HostEntry(host="a", slots=8, line=1),
                    HostEntry(host="b", slots=8, line=2),
                ),
            ),
            id="the hostfile names two nodes",
        ),
    ],
)
def test_a_shared_cache_of_several_nodes(env: Any, command: Any, hostfile: Any) -> None:
    fact = storage(place("built extensions", file_system="nfs4", network=True, mount="/home"))
    function = cache_on_network_disk.builds_are_local
    (found,) = judge(
        function, storage=fact, environment=env, launch_command=command, hostfile=hostfile
    ).findings
    assert found.status.value == "warn"
    assert "`TORCH_EXTENSIONS_DIR`" in found.hint
    assert judge(
        function,
        storage=storage(place("built extensions")),
        environment=env,
        launch_command=command,
        hostfile=hostfile,
    ).statuses == ["ok"]


@pytest.mark.parametrize(
    ("path", "kind", "expected", "hint"),
    [
        pytest.param("~/tmp", None, "warn", "$HOME", id="a tilde that no shell expanded"),
        pytest.param("/scratch/me", None, "warn", "mkdir -p /scratch/me", id="nothing is there"),
        pytest.param("/scratch/me", "dir", "ok", "", id="a directory"),
    ],
)
def test_the_folder_for_temporary_files(
    path: str, kind: str | None, expected: str, hint: str
) -> None:
    place = Place(purpose="temporary files", path=path, variable="TMPDIR", kind=kind)
    found = judge(path_missing.paths_are_there, storage=Storage(places=(place,)))
    assert found.status == expected
    assert all(hint in one.hint for one in found.findings)


@pytest.mark.parametrize(
    ("path", "expected"),
    [pytest.param("/tmp", "warn", id="/tmp"), pytest.param("/data", "ok", id="another")],
)
def test_a_mount_of_a_paste_with_9_mib(path: str, expected: str) -> None:
    place = Place(
        purpose="mounted file system",
        path=path,
        mount=path,
        total_bytes=2 << 30,
        free_bytes=9 << 20,
    )
    assert judge(disk_full.places_have_room, storage=Storage(places=(place,))).status == expected
