"""Rows of `nccl-unknown-variable`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment
from dsdoctor_checks.nccl import nccl_unknown_variable
from tests.checks.gpu.support import worst


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ({"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0"}, "ok"),
        ({"NCCL_VERSION": "2.27", "NCCL_BLOCKING_WAIT": "1", "OMP_NUM_THREADS": "4"}, "ok"),
        ({"NCCL_FASTRAK_NUM_FLOWS": "2"}, "ok"),
        ({"NCCL_TIMEOUT": "1800"}, "warn"),
        ({"NCCL_IB_QPS": "4"}, "warn"),
        ({"NCCL_SOCKET_IFNMAE": "eth0"}, "warn"),
    ],
)
def test_rows(fact: dict[str, str], expected: str) -> None:
    assert worst(nccl_unknown_variable.variables_are_read, Environment(variables=fact)) == expected


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_SOCKET_IFNMAE", "NCCL_SOCKET_IFNAME"),
        ("NCCL_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_TIMEOUT", None),
    ],
)
def test_the_nearest_name(name: str, meant: str | None) -> None:
    assert nccl_unknown_variable.nearest(name) == meant
