"""`df` and `ulimit` in a paste."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Storage
from dsdoctor.paste.environment import environment_of
from dsdoctor.testing import judge
from dsdoctor_checks.storage.disk_full import places_have_room
from tests.paste.reading import stated

HEAD = "Filesystem      Size  Used Avail Use% Mounted on\n"
KIB = "Filesystem     1K-blocks  Used Available Use% Mounted on\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param(
            HEAD + "shm              64M     0   64M   0% /dev/shm\n", 64 << 20, id="df -h"
        ),
        pytest.param(
            HEAD + "tmpfs           7.8G     0  7.8G   0% /dev/shm\n",
            int(7.8 * (1 << 30)),
            id="df -h with a decimal",
        ),
        pytest.param(
            KIB + "shm                65536     0     65536   0% /dev/shm\n",
            64 << 20,
            id="df in KiB",
        ),
        pytest.param(
            "Filesystem Type Size Used Avail Use% Mounted on\nshm tmpfs 1.0G 0 1.0G 0% /dev/shm",
            1 << 30,
            id="df -hT",
        ),
    ],
)
def test_the_size_of_shared_memory(text: str, size: int) -> None:
    assert stated(text).facts["resources"]["shm_total_bytes"] == size


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            HEAD + "tmpfs            64M     0   64M   0% /run/shm\n", id="another folder"
        ),
        pytest.param(
            HEAD + "shm            65536     0 65536   0% /dev/shm\n",
            id="a size without a unit",
        ),
        pytest.param("mount -o remount,size=64M /dev/shm\n", id="a command"),
    ],
)
def test_what_is_no_size_of_it(text: str) -> None:
    assert environment_of(text) is None


ALL = """\
core file size              (blocks, -c) 0
max locked memory           (kbytes, -l) 64
open files                          (-n) 1024
"""


@pytest.mark.parametrize(
    ("text", "field", "limit"),
    [
        pytest.param("me@node:~$ ulimit -l\n8192\n", "limit_memlock", 8 << 20, id="locked memory"),
        pytest.param("ulimit -Sn\n256\n", "limit_nofile", 256, id="open files"),
        pytest.param(ALL, "limit_memlock", 64 << 10, id="locked memory among all"),
        pytest.param(ALL, "limit_nofile", 1024, id="open files among all"),
        pytest.param("# ulimit -l\nunlimited\n", "limit_memlock", None, id="unlimited"),
    ],
)
def test_limits(text: str, field: str, limit: Any) -> None:
    assert stated(text).facts["resources"][field] == limit


@pytest.mark.parametrize(
    "text",
    [
        "ulimit -Hn\n4096\n",  # a job starts with the soft one
        "run ulimit -n 65536\n1024\n",
        "ulimit -l\nbash: no\n",
        "I looked at ulimit -l\n64\n",
    ],
)
def test_what_is_no_limit(text: str) -> None:
    assert environment_of(text) is None


@pytest.mark.parametrize(
    ("row", "mount"),
    [
        pytest.param("/dev/sda5        32G   32G     0  100% /", "/", id="df -h"),
        pytest.param("/dev/sda1   xfs  47G   47G     0 100% /home", "/home", id="df -hT"),
        pytest.param("nas:/vol/me     9.1T  9.1T     0 100% /data", "/data", id="a network disk"),
    ],
)
def test_a_full_file_system_is_a_place_without_room(row: str, mount: str) -> None:
    text = f"{HEAD}udev            7.8G     0  7.8G   0% /dev\n{row}\n"
    (place,) = stated(text).facts["storage"]["places"]
    assert (place["path"], place["free_bytes"]) == (mount, 0)
    found = judge(places_have_room, storage=stated(text).get(Storage))
    assert found.status == "warn"
    assert f"`{mount}` has 0 MiB free" in found.worst.message


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("/dev/loop3       56M   56M     0 100% /snap/core18/1", id="an image"),
        pytest.param("/dev/sr0         56M   56M     0 100% /media/cdrom", id="a disc"),
        pytest.param("/dev/sda5        32G   31G  400M  99% /", id="nearly full"),
        pytest.param("/dev/sda1       512M  512M     0 100% /boot/efi", id="what no job writes to"),
    ],
)
def test_what_is_no_full_file_system(row: str) -> None:
    assert environment_of(f"{HEAD}{row}\n") is None


@pytest.mark.parametrize(
    ("row", "free", "status"),
    [
        pytest.param("overlay    30G   30G  205M 100% /", 205 << 20, "warn", id="the root's file system"),
        pytest.param("/dev/sdb1  30T   30T   90G 100% /", 90 << 30, "ok", id="a large one"),
        pytest.param("/dev/sdb1  30G   30G  205M 100% /mnt/data", 205 << 20, "ok", id="no home"),
    ],
)  # fmt: skip
def test_a_file_system_that_is_nearly_full(row: str, free: int, status: str) -> None:
    text = f"{HEAD}{row}\n"
    (place,) = stated(text).facts["storage"]["places"]
    assert place["free_bytes"] == free
    assert judge(places_have_room, storage=stated(text).get(Storage)).worst.status.value in (
        status,
        "skip" if status == "ok" else status,
    )


def test_df_in_kib_is_full_too() -> None:
    text = KIB + "/dev/sda1       47929956  47929956         0 100% /home\n"
    (place,) = stated(text).facts["storage"]["places"]
    assert place["total_bytes"] == 47929956 << 10
