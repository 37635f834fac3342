"""Values of accelerate's YAML that stop a run, compared with the installed accelerate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dsdoctor.probes.accelerate_values import rejected_value

GOOD = {
    "compute_environment": "LOCAL_MACHINE",
    "distributed_type": "DEEPSPEED",
    "deepspeed_config": {"zero_stage": 3, "offload_optimizer_device": "cpu"},
    "mixed_precision": "bf16",
    "num_machines": 1,
    "num_processes": 2,
}
LOADED = """
import sys
from accelerate.commands.config.config_args import load_config_from_file
load_config_from_file(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"num_proceses": 2}, "the closest is `num_processes`", id="a typo"),
        pytest.param({"distributed_type": "DEEP_SPEED"}, "closest is `DEEPSPEED`", id="a type"),
        pytest.param({"compute_environment": "LOCAL"}, "expected `LOCAL_MACHINE`", id="a place"),
        pytest.param({}, "", id="a sound file"),
        pytest.param({"distributed_type": "deepspeed"}, "closest is `DEEPSPEED`", id="lower case"),
        pytest.param({"gradient_clipping": 1.0}, "is not a key of it", id="a key of a section"),
        pytest.param({"downcast_bf16": "no", "use_cpu": False}, "", id="usual keys"),
    ],
)
def test_what_accelerate_does_not_load_is_rejected(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    values = {**GOOD, **changes}
    if "num_proceses" in changes:
        del values["num_processes"]
    found = rejected_value(values, {})
    assert (found is None) == (said == "")
    if found is not None:
        assert said in found.said
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(values))
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(file)], capture_output=True, check=False, timeout=500
    )
    assert (done.returncode != 0) == (said != "")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"mixed_precision": "fp18"}, "`fp18`; expected `no`", id="a precision"),
        pytest.param({"num_processes": "eight"}, "`eight`; expected a number", id="a word"),
        pytest.param({"mixed_precision": False}, "an unquoted `no`", id="an unquoted no"),
        pytest.param(
            {"dynamo_config": {"dynamo_backend": "INDUCTR"}},
            "closest is `INDUCTOR`",
            id="a compiler",
        ),
    ],
)
def test_what_the_launcher_stops_at_is_rejected(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    values = {**GOOD, "distributed_type": "MULTI_CPU", **changes}
    found = rejected_value(values, {})
    assert found is not None
    assert said in found.said
    assert not found.in_ranks
    file, script = tmp_path / "a.yaml", tmp_path / "t.py"
    file.write_text(yaml.safe_dump(values))
    script.write_text("print('begun')\n")
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(file)]
    done = subprocess.run(
        [*launch, str(script)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode != 0
    assert "begun" not in done.stdout


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"zero_stage": 5}, "`zero_stage` is `5`; expected `0`, `1`, `2` or `3`"),
        ({"offload_param_device": "gpu"}, "`offload_param_device` is `gpu`; expected `none`"),
        ({"zero_stage": "2", "offload_optimizer_device": "nvme"}, ""),
        ({"zero_stage": 5, "deepspeed_config_file": "ds.json"}, ""),
    ],
    ids=["a stage", "a device", "a sound section", "the file decides"],
)
def test_what_deepspeed_rejects_in_the_ranks(section: dict[str, object], said: str) -> None:
    found = rejected_value({**GOOD, "deepspeed_config": section}, {})
    assert (found is None) == (said == "")
    if found is not None:
        assert found.said.startswith(said)
        assert found.in_ranks
    other = {**GOOD, "distributed_type": "FSDP", "deepspeed_config": section}
    assert rejected_value(other, {}) is None


def test_an_option_takes_precedence() -> None:
    assert rejected_value({**GOOD, "mixed_precision": "fp18"}, {"mixed_precision": "bf16"}) is None
    bad = {**GOOD, "deepspeed_config": {"zero_stage": 5}}
    assert rejected_value(bad, {"zero_stage": "2"}) is None


def test_fsdp_loads_into_ranks_that_are_synchronized() -> None:
    values = {**GOOD, "distributed_type": "FSDP", "fsdp_config": {"fsdp_sync_module_states": False}}
    found = rejected_value(values, {})
    assert found is not None
    assert "`fsdp_cpu_ram_efficient_loading` needs it" in found.said
    values["fsdp_config"] = {
        "fsdp_sync_module_states": False,
        "fsdp_cpu_ram_efficient_loading": False,
    }
    assert rejected_value(values, {}) is None


def test_the_number_of_ranks_may_be_passed() -> None:
    values = {key: value for key, value in GOOD.items() if key != "num_processes"}
    assert rejected_value(values, {}) is None
    assert rejected_value(values, {"num_processes": "8"}, launched=True) is None
    found = rejected_value(values, {}, launched=True)
    assert found is not None
    assert "`num_processes` is missing" in found.said


def test_the_type_is_needed_and_the_section_is_a_mapping() -> None:
    found = rejected_value({"compute_environment": "LOCAL_MACHINE", "num_machines": 1}, {})
    assert found is not None
    assert "`distributed_type` is missing" in found.said
    found = rejected_value({**GOOD, "deepspeed_config": ["ds.json"]}, {})
    assert found is not None
    assert "expected a mapping" in found.said
