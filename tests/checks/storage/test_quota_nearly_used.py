"""quota_nearly_used."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Quota, Storage
from dsdoctor.probes.storage import parse_quota
from dsdoctor.testing import judge
from dsdoctor_checks.storage.quota_nearly_used import quota_has_room

GIB = 1 << 30


def verdict(**quota: Any) -> list[str]:
    fields: dict[str, Any] = {"device": "home:/export", "used_bytes": 0} | quota
    return judge(quota_has_room, storage=Storage(quotas=(Quota(**fields),))).statuses


@pytest.mark.parametrize(
    ("quota", "status"),
    [
        pytest.param(
            {"used_bytes": 10 * GIB, "soft_bytes": 20 * GIB, "hard_bytes": 22 * GIB},
            "ok",
            id="half of the soft limit is used",
        ),
        pytest.param({"used_bytes": 90 * GIB}, "ok", id="no limit is set"),
        pytest.param(
            {"used_bytes": int(19.8 * GIB), "hard_bytes": 20 * GIB},
            "warn",
            id="99 % of the hard limit is used",
        ),
        pytest.param(
            {"used_bytes": 21 * GIB, "soft_bytes": 20 * GIB, "hard_bytes": 25 * GIB},
            "warn",
            id="the soft limit is exceeded",
        ),
        pytest.param(
            {"used_bytes": 20 * GIB, "hard_bytes": 20 * GIB}, "fail", id="the hard limit is reached"
        ),
        pytest.param(
            {"used_files": 99_900, "hard_files": 100_000}, "warn", id="100 files short of the limit"
        ),
        pytest.param(
            {"used_files": 100_000, "hard_files": 100_000},
            "fail",
            id="the limit of files is reached",
        ),
    ],
)
def test_quota(quota: dict[str, Any], status: str) -> None:
    assert verdict(**quota) == [status]


def test_no_quota_is_no_finding() -> None:
    assert judge(quota_has_room, storage=Storage()).statuses == ["skip"]


def test_what_quota_prints_when_it_is_exceeded() -> None:
    """Stars mark what is over; the command then exits with 1."""
    text = (
        "Disk quotas for user me (uid 1000): \n"
        "     Filesystem   space   quota   limit   grace   files   quota   limit   grace\n"
        "nas:/export/home 20971520* 20971520 22020096 1795000000 812 0 0 0\n"
        "        /dev/sdb1       4       0       0       0       1       0       0       0\n"
    )
    home, other = parse_quota(text)
    assert (home.device, home.used_bytes) == ("nas:/export/home", 20 * GIB)
    assert (home.soft_bytes, home.hard_bytes) == (20 * GIB, 21 * GIB)
    assert (home.used_files, home.hard_files) == (812, None)
    assert (other.soft_bytes, other.hard_bytes) == (None, None)
