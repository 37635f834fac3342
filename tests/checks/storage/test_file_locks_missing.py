"""Rows of `file-locks-missing`, and the option that Lustre is mounted with."""

from __future__ import annotations

import pytest

from dsdoctor.api import Place, Storage, TorchBuild
from dsdoctor.probes.storage import parse_mounts
from dsdoctor.testing import judge
from dsdoctor_checks.storage import file_locks_missing


@pytest.mark.parametrize(
    ("purpose", "locks", "torch", "expected"),
    [
        pytest.param(
            "Hugging Face cache", False, "2.13.0", "warn", id="the cache cannot be locked"
        ),
        pytest.param("Hugging Face cache", True, "2.13.0", "ok", id="it can"),
        pytest.param(
            "built extensions", False, "2.13.0", "ok", id="builds use no locks of the kernel"
        ),
        pytest.param("built extensions", False, "2.14.0", "warn", id="builds use them"),
        pytest.param("built extensions", False, None, "ok", id="no torch builds there"),
        pytest.param("Triton cache", False, "2.14.0", "ok", id="kernels use none"),
    ],
)
def test_rows(purpose: str, locks: bool, torch: str | None, expected: str) -> None:
    place = Place(purpose=purpose, path="/l/hf", mount="/l", file_system="lustre", locks=locks)
    found = judge(
        file_locks_missing.caches_can_be_locked,
        storage=Storage(places=(place,)),
        torch_build=TorchBuild(version=torch),
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("line", "locks"),
    [
        pytest.param("9 1 0:9 / /l rw - lustre 10.0.0.1@tcp:/s rw,noflock", False, id="noflock"),
        pytest.param("9 1 0:9 / /l rw,noflock - lustre x rw", False, id="option of the mount"),
        pytest.param("9 1 0:9 / /l rw - lustre x rw,flock,lazystatfs", True, id="flock"),
        pytest.param("9 1 0:9 / /l rw - ext4 /dev/sda1 rw", True, id="another file system"),
    ],
)
def test_the_option_is_read(line: str, locks: bool) -> None:
    assert parse_mounts(line)[0].locks is locks
