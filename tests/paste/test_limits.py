"""`df` and `ulimit` in a paste."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.paste.environment import environment_of
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
