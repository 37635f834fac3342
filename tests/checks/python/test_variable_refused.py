"""Rows of `variable-refused`."""

from __future__ import annotations

import pytest

from dsdoctor import judge as judging
from dsdoctor import packs
from dsdoctor.api import (
    DeepSpeedLive,
    Environment,
    ImportOutcome,
    Missing,
    RunNeeds,
    Status,
    TorchBuild,
    TorchLive,
    Why,
)
from dsdoctor.model.snapshot import of
from dsdoctor.testing import judge
from dsdoctor_checks.python import variable_refused
from tests.checks.python.support import deepspeed, deepspeed_live, torch_live

CHECK = variable_refused.variables_are_accepted
HERE = TorchBuild(version="2.13.0", path="/env/torch")
NOT_TRIED = Missing(why=Why.NOT_ASKED, detail="--quick")
UNKNOWN = "DS_ACCELERATOR must be one of ['cuda', 'cpu', 'npu']. Value \"gpu\" is not supported"
NO_NPU = "NPU_Accelerator requires torch_npu, which is not installed on this system."
LEVELS = "The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL."
LOGS = "\nInvalid log settings: dynam0, must be a comma separated list of fully\nqualified module names"
EMPTY_LOGS = "'dict' object has no attribute 'get_log_level_pairs'"


def torch_fails(words: str) -> TorchLive:
    return TorchLive(imported=ImportOutcome(ok=False, error_type="ValueError", message=words))


@pytest.mark.parametrize(
    ("variables", "torch", "live", "words"),
    [
        pytest.param(
            {"DS_ACCELERATOR": "gpu"},
            torch_live(),
            deepspeed_live(UNKNOWN, "ValueError"),
            "is `gpu`; DeepSpeed accepts cuda, cpu, npu",
            id="an accelerator that DeepSpeed does not know",
        ),
        pytest.param(
            {"DS_ACCELERATOR": "npu"},
            torch_live(),
            deepspeed_live(NO_NPU, "ValueError"),
            "is `npu`; DeepSpeed does not find a working `torch_npu`",
            id="an accelerator whose package is missing",
        ),
        pytest.param(
            {"TORCH_LOGS": "dynam0"},
            torch_fails(LOGS),
            NOT_TRIED,
            "is `dynam0`; this torch does not know",
            id="a name that torch does not know",
        ),
        pytest.param(
            {"TORCH_LOGS": ""},
            torch_fails(EMPTY_LOGS),
            NOT_TRIED,
            "is set but empty",
            id="an empty value",
        ),
        pytest.param(
            {"TORCH_DISTRIBUTED_DEBUG": "VERBOSE"},
            torch_live(),
            deepspeed_live(LEVELS, "ValueError"),
            "torch accepts OFF, INFO and DETAIL",
            id="a level that the import rejects",
        ),
        pytest.param(
            {"TORCH_DISTRIBUTED_DEBUG": ""},
            NOT_TRIED,
            NOT_TRIED,
            "torch accepts OFF, INFO and DETAIL",
            id="a level that no torch accepts, not tried",
        ),
    ],
)
def test_values_that_stop_an_import(
    variables: dict[str, str],
    torch: TorchLive | Missing,
    live: DeepSpeedLive | Missing,
    words: str,
) -> None:
    (finding,) = judge(
        CHECK,
        environment=Environment(variables=variables),
        torch_live=torch,
        deep_speed_live=live,
        torch_build=HERE,
    ).bad
    assert finding.status is Status.FAIL
    assert words in finding.message
    assert finding.evidence["variable"] in variables
    assert f"unset {finding.evidence['variable']}" in finding.hint


@pytest.mark.parametrize(
    ("variables", "live", "expected"),
    [
        pytest.param({}, deepspeed_live(), "ok", id="nothing is set"),
        pytest.param(
            {"TORCH_DISTRIBUTED_DEBUG": "detail", "TORCH_LOGS": "+dynamo", "DS_ACCELERATOR": "cpu"},
            deepspeed_live(),
            "ok",
            id="values that are accepted, in any case of letters",
        ),
        pytest.param(
            {"DS_ACCELERATOR": "npu"},
            deepspeed_live("No module named 'hjson'", "ModuleNotFoundError"),
            "ok",
            id="the import fails for another reason",
        ),
        pytest.param(
            {}, deepspeed_live(NO_NPU, "ValueError"), "ok", id="the variable is not set here"
        ),
    ],
)
def test_no_finding(variables: dict[str, str], live: DeepSpeedLive, expected: str) -> None:
    judged = judge(
        CHECK,
        environment=Environment(variables=variables),
        torch_live=torch_live(),
        deep_speed_live=live,
        torch_build=HERE,
    )
    assert judged.status == expected


def test_a_job_without_deepspeed_does_not_read_its_variable() -> None:
    judged = judge(
        CHECK,
        environment=Environment(variables={"DS_ACCELERATOR": "npu"}),
        torch_live=torch_live(),
        deep_speed_live=deepspeed_live(NO_NPU, "ValueError"),
        torch_build=HERE,
        run_needs=RunNeeds(command=("python", "train.py"), uses_deepspeed=False),
    )
    assert judged.status == "ok"


def test_without_torch_nothing_reads_them() -> None:
    judged = judge(
        CHECK,
        environment=Environment(variables={"TORCH_DISTRIBUTED_DEBUG": "x"}),
        torch_build=TorchBuild(),
    )
    assert judged.status == "skip"


def test_only_the_variable_is_reported_and_no_package_is_reinstalled() -> None:
    registry = packs.load(builtin_only=True)
    snapshot = of(
        [
            Environment(variables={"TORCH_LOGS": "dynam0"}),
            HERE,
            torch_fails(LOGS),
            deepspeed(),
            deepspeed_live(LOGS, "ValueError"),
        ]
    )
    report = judging.judge(snapshot, list(registry), registry)
    bad = [one for one in report.findings if one.status is Status.FAIL]
    assert [one.condition for one in bad] == ["variable-refused"]
    assert bad[0].fixes == ("unset-variables",)
