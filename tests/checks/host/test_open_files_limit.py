"""Rows of `open-files-limit`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import OsInfo, Resources
from dsdoctor.testing import judge
from dsdoctor_checks.host import open_files_limit


def machine(**changes: Any) -> Resources:
    usual: dict[str, Any] = {
        "cpus_logical": 8,
        "cpus_usable": 8,
        "memory_total_bytes": 64 << 30,
        "memory_available_bytes": 48 << 30,
        "shm_total_bytes": 32 << 30,
        "limit_nofile": 1024,
        "limit_stack": 8 << 20,
        "limit_memlock": 8 << 20,
    }
    return Resources(**{**usual, **changes})


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(machine(), "ok", id="1024 files may be open"),
        pytest.param(machine(limit_nofile=None), "ok", id="any number of files may be open"),
        pytest.param(machine(limit_nofile=512), "warn", id="512 files may be open"),
        pytest.param(machine(limit_nofile=64), "fail", id="64 files may be open"),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert judge(open_files_limit.files_can_be_opened, resources=fact).status == expected


@pytest.mark.parametrize("container", ["docker", None])
def test_a_container_is_started_with_the_limit(container: str | None) -> None:
    os = OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="h", container=container)
    low = machine(limit_nofile=512)
    (found,) = judge(open_files_limit.files_can_be_opened, resources=low, os_info=os).findings
    assert ("--ulimit nofile=" in found.hint) is (container is not None)
