"""Rows of `p2p-unsupported`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, GpuTopology
from dsdoctor.model.facts.gpu import GpuPair
from dsdoctor.testing import judge
from dsdoctor_checks.topology import p2p_unsupported

GPUS = Gpus(gpus=(Gpu(index=0), Gpu(index=1)))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            GpuPair(a=0, b=1, nvlinks=18, p2p_read="OK", p2p_write="OK"),
            "ok",
            id="GPUs with NVLink reach each other",
        ),
        pytest.param(
            GpuPair(
                a=0,
                b=1,
                nvlinks=0,
                p2p_read="CHIPSET_NOT_SUPPORTED",
                p2p_write="CHIPSET_NOT_SUPPORTED",
            ),
            "ok",
            id="GPUs without NVLink on a chipset that does not pass transfers",
        ),
        pytest.param(
            GpuPair(a=0, b=1, nvlinks=None, p2p_read="NOT_SUPPORTED", p2p_write="NOT_SUPPORTED"),
            "ok",
            id="the number of links is unknown",
        ),
        pytest.param(
            GpuPair(a=0, b=1, nvlinks=4, p2p_read="UNKNOWN_42", p2p_write="UNKNOWN_42"),
            "ok",
            id="a state that is not known yet",
        ),
        pytest.param(
            GpuPair(
                a=0, b=1, nvlinks=4, p2p_read="DISABLED_BY_REGKEY", p2p_write="DISABLED_BY_REGKEY"
            ),
            "fail",
            id="the driver's registry key disables transfers over NVLink",
        ),
    ],
)
def test_rows(fact: GpuPair, expected: str) -> None:
    assert (
        judge(
            p2p_unsupported.linked_gpus_reach_each_other,
            gpu_topology=GpuTopology(pairs=(fact,)),
            gpus=GPUS,
            environment=Environment(),
        ).status
        == expected
    )


def test_nccl_told_to_ignore_it() -> None:
    pair = GpuPair(a=0, b=1, nvlinks=4, p2p_read="DISABLED_BY_REGKEY", p2p_write="OK")
    env = Environment(variables={"NCCL_IGNORE_DISABLED_P2P": "1"})
    facts: dict[str, Any] = {
        "gpu_topology": GpuTopology(pairs=(pair,)),
        "gpus": GPUS,
        "environment": env,
    }
    assert judge(p2p_unsupported.linked_gpus_reach_each_other, **facts).status == "warn"
