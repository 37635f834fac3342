"""Rows of `deepspeed-torch-incompatible`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Checkpoint, CheckpointFile, TorchBuild
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.python import deepspeed_torch_incompatible
from tests.checks.python.support import deepspeed, deepspeed_live

CHECK = deepspeed_torch_incompatible.deepspeed_suits_torch


@pytest.mark.parametrize(
    ("version", "torch", "expected"),
    [
        pytest.param("0.19.8", "2.13.0+cpu", "ok", id="deepspeed 0.19.8 with torch 2.13"),
        pytest.param(
            "0.19.8", "2.15.0", "ok", id="deepspeed 0.19.8 with a torch newer than the table"
        ),
        pytest.param("0.8.0", "1.13.1", "ok", id="deepspeed 0.8.0 with torch 1.13"),
        pytest.param("0.8.0", "2.0.1", "fail", id="deepspeed 0.8.0 is too old for torch 2.0"),
        pytest.param("0.14.0", "2.3.1", "fail", id="deepspeed 0.14.0 is too old for torch 2.3"),
        pytest.param("0.14.0", "2.2.2", "ok", id="deepspeed 0.14.0 with torch 2.2"),
        pytest.param("0.14.3", "2.4.0", "fail", id="deepspeed 0.14.3 is too old for torch 2.4"),
        pytest.param("0.14.4", "2.4.0", "ok", id="deepspeed 0.14.4 is the first for torch 2.4"),
        pytest.param("0.19.4", "2.12.0", "warn", id="deepspeed 0.19.4 has faults with torch 2.12"),
        pytest.param(
            "0.19.5",
            "2.12.0",
            "ok",
            id="deepspeed 0.19.5 is the first without faults with torch 2.12",
        ),
    ],
)
def test_rows(version: str, torch: str, expected: str) -> None:
    assert (
        judge(
            CHECK, deep_speed_install=deepspeed(version), torch_build=TorchBuild(version=torch)
        ).status
        == expected
    )


def test_an_import_that_worked_outranks_the_table() -> None:
    facts: dict[str, Any] = {
        "deep_speed_install": deepspeed("0.14.0"),
        "torch_build": TorchBuild(version="2.3.1"),
        "deep_speed_live": deepspeed_live(),
    }
    assert judge(CHECK, **facts).status == "ok"


SHARDS = Checkpoint(
    path="out", files=(CheckpointFile(name="mp_rank_00_model_states.pt", size=9, role="model"),)
)
WEIGHTS = Checkpoint(
    path="m", files=(CheckpointFile(name="model.safetensors", size=9, role="weights"),)
)


@pytest.mark.parametrize(
    ("version", "facts", "expected"),
    [
        pytest.param("0.15.4", {"checkpoint": SHARDS}, "warn", id="goes on from shards"),
        pytest.param(
            "0.15.4",
            {
                "launch_command": parse_command(
                    ["deepspeed", "t.py", "--resume_from_checkpoint", "c"]
                )
            },
            "warn",
            id="the command goes on from a checkpoint",
        ),
        pytest.param("0.16.0", {"checkpoint": SHARDS}, "ok", id="0.16.0 passes weights_only"),
        pytest.param("0.15.4", {"checkpoint": WEIGHTS}, "ok", id="weights that it does not load"),
        pytest.param("0.15.4", {}, "ok", id="starts anew"),
    ],
)
def test_checkpoints_of_torch_2_6(version: str, facts: dict[str, Any], expected: str) -> None:
    build = TorchBuild(version="2.6.0+cu124", cuda="12.4")
    judged = judge(CHECK, deep_speed_install=deepspeed(version), torch_build=build, **facts)
    assert judged.status == expected
