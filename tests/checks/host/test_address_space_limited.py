"""Rows of `address-space-limited`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ImportOutcome, Resources, TorchLive
from dsdoctor.testing import judge
from dsdoctor_checks.host import address_space_limited


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
        pytest.param(machine(), "ok", id="no limit"),
        pytest.param(
            machine(limit_address_space=64 << 30),
            "warn",
            id="64 GiB of addresses on a machine with 64 GiB",
        ),
        pytest.param(machine(limit_address_space=4 << 30), "fail", id="4 GiB of addresses"),
    ],
)
def test_rows(fact: Resources, expected: str) -> None:
    assert judge(address_space_limited.address_space_is_free, resources=fact).status == expected


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(
            TorchLive(imported=ImportOutcome(ok=True)), "warn", id="a CPU build starts under it"
        ),
        pytest.param(
            TorchLive(imported=ImportOutcome(ok=True), cuda_ok=False), "fail", id="CUDA does not"
        ),
        pytest.param(TorchLive(imported=ImportOutcome(ok=False)), "fail", id="the import fails"),
    ],
)
def test_what_starts_under_the_limit_is_only_warned_of(live: TorchLive, expected: str) -> None:
    fact = machine(limit_address_space=3 << 30)
    found = judge(address_space_limited.address_space_is_free, resources=fact, torch_live=live)
    assert found.status == expected
