"""Rows of `deepspeed-torch-incompatible`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Checkpoint, CheckpointFile, DsConfig, TorchBuild
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.python import deepspeed_torch_incompatible
from dsdoctor_checks.python._tables import deepspeed_for, floors_of
from tests.checks.python.support import deepspeed, deepspeed_live

CHECK = deepspeed_torch_incompatible.deepspeed_suits_torch


def as_config(zero: dict[str, int]) -> DsConfig:
    return DsConfig(path="ds.json", parsed={"zero_optimization": zero})


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


@pytest.mark.parametrize(
    ("version", "torch", "config", "expected"),
    [
        pytest.param("0.19.8", "2.3.1", {}, "ok", id="torch 2.3 with deepspeed 0.19.8"),
        pytest.param("0.19.8", "2.2.2", {}, "ok", id="torch 2.2 without ZeRO"),
        pytest.param("0.19.8", "2.2.2", {"stage": 2}, "fail", id="torch 2.2 is too old for ZeRO"),
        pytest.param("0.19.8", "2.2.2", None, "warn", id="torch 2.2 without a config"),
        pytest.param("0.18.3", "2.1.2", {"stage": 1}, "fail", id="0.18.3 is the first for 2.3"),
        pytest.param("0.18.2", "2.1.2", {"stage": 3}, "ok", id="0.18.2 with torch 2.1"),
        pytest.param("0.18.6", "2.3.1", {"stage": 3}, "fail", id="0.18.6 needs torch 2.4.1"),
        pytest.param("0.18.6", "2.4.1", {"stage": 3}, "ok", id="0.18.6 with torch 2.4.1"),
        pytest.param("0.17.3", "2.0.1", {"stage": 1}, "fail", id="0.17.3 is too new for torch 2.0"),
        pytest.param("0.17.3", "2.0.1", {"stage": 0}, "ok", id="0.17.3 with torch 2.0, no ZeRO"),
        pytest.param("0.18.7", "2.3.1", {}, "fail", id="0.18.7 is not imported with torch 2.3"),
        pytest.param("0.19.7", "2.3.1", {}, "fail", id="0.19.7 is not imported with torch 2.3"),
        pytest.param("0.19.7", "2.4.0", {"stage": 3}, "ok", id="0.19.7 with torch 2.4"),
        pytest.param("0.16.5", "1.13.1", {}, "fail", id="0.16.5 is the first for torch 2.0"),
        pytest.param("0.16.4", "1.13.1", {"stage": 2}, "ok", id="0.16.4 with torch 1.13"),
        pytest.param("0.15.3", "2.1.2", {}, "fail", id="0.15.3 asks torch for is_compiling"),
        pytest.param("0.15.3", "2.0.1", {}, "ok", id="0.15.3 does not ask torch 2.0"),
        pytest.param("0.15.4", "2.1.2", {"stage": 2}, "ok", id="0.15.4 does not ask"),
    ],
)
def test_torch_is_the_older(
    version: str, torch: str, config: dict[str, int] | None, expected: str
) -> None:
    facts: dict[str, Any] = {} if config is None else {"ds_config": as_config(config)}
    result = judge(
        CHECK,
        deep_speed_install=deepspeed(version),
        torch_build=TorchBuild(version=torch),
        **facts,
    )
    assert result.status == expected
    for row in result.bad:
        assert "install torch 2." in row.hint
        assert f"'{deepspeed_for(torch)}'" in row.hint or torch.startswith("2.3")


def test_a_deepspeed_that_was_imported_is_judged_by_what_fails_later() -> None:
    result = judge(
        CHECK,
        deep_speed_install=deepspeed("0.19.0"),
        torch_build=TorchBuild(version="2.2.2"),
        deep_speed_live=deepspeed_live(),
        ds_config=as_config({"stage": 2}),
    )
    (row,) = result.bad
    assert row.evidence["torch_needed"] == "2.3"


@pytest.mark.parametrize(
    "torch", ["1.13.1", "2.0.1", "2.1.2+cu121", "2.2.2", "2.3.1", "2.4.0", "2.13.0", None]
)
def test_what_is_advised_is_no_finding(torch: str | None) -> None:
    wanted = deepspeed_for(torch)
    newest = {
        "deepspeed": "0.19.8",
        "deepspeed<0.18.3": "0.18.2",
        "deepspeed<0.17.2": "0.17.1",
        "deepspeed<0.16.5": "0.16.4",
    }
    assert not floors_of(newest[wanted], torch)


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
