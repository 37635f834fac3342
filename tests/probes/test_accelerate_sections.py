"""Sections of accelerate's YAML, compared with what the installed accelerate makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.python import Package, Packages
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes import launch_parser
from dsdoctor.probes.accelerate_keys import unread
from dsdoctor.probes.accelerate_values import rejected_value
from dsdoctor.probes.children import parse_launch

BASE: dict[str, Any] = {
    "compute_environment": "LOCAL_MACHINE",
    "machine_rank": 0,
    "mixed_precision": "bf16",
    "num_machines": 1,
    "num_processes": 2,
    "use_cpu": False,
}


def fsdp(**section: object) -> dict[str, Any]:
    return {**BASE, "distributed_type": "FSDP", "fsdp_config": section}


def fsdp2(**section: object) -> dict[str, Any]:
    return fsdp(fsdp_version=2, **section)


def megatron(**section: object) -> dict[str, Any]:
    return {**BASE, "distributed_type": "MEGATRON_LM", "megatron_lm_config": section}


def compiled(**section: object) -> dict[str, Any]:
    section = {"dynamo_backend": "INDUCTOR", **section}
    return {**BASE, "distributed_type": "MULTI_GPU", "dynamo_config": section}


def machines(kind: str, **values: object) -> dict[str, Any]:
    return {**BASE, "distributed_type": kind, "num_machines": 2, "num_processes": 4, **values}


#: Values, and what is said of them; "" = the ranks start.
ROWS = {
    "usual": (fsdp(fsdp_sharding_strategy="FULL_SHARD", fsdp_offload_params=False,
                   fsdp_auto_wrap_policy="TRANSFORMER_BASED_WRAP", fsdp_version=1,
                   fsdp_backward_prefetch="BACKWARD_PRE", fsdp_use_orig_params=True,
                   fsdp_state_dict_type="SHARDED_STATE_DICT"), ""),
    "numbers of torch": (fsdp(fsdp_sharding_strategy=1, fsdp_backward_prefetch=2,
                              fsdp_state_dict_type=3), ""),
    "nulls": (fsdp(fsdp_auto_wrap_policy=None, fsdp_backward_prefetch=None,
                   fsdp_state_dict_type=None), ""),
    "lower case": (fsdp(fsdp_sharding_strategy="full_shard", fsdp_offload_params="true"), ""),
    "a strategy": (fsdp(fsdp_sharding_strategy="ZERO3"), "`fsdp_sharding_strategy` is `ZERO3`"),
    "no strategy": (fsdp(fsdp_sharding_strategy=None), "`fsdp_sharding_strategy` is `null`"),
    "a number of none": (fsdp(fsdp_sharding_strategy=6), "`fsdp_sharding_strategy` is `6`"),
    "without the prefix": (fsdp(sharding_strategy="x"), "`sharding_strategy` is `x`"),
    "a policy": (fsdp(fsdp_auto_wrap_policy="NONE"), "`fsdp_auto_wrap_policy` is `NONE`"),
    "a prefetch": (fsdp(fsdp_backward_prefetch="PRE"), "`fsdp_backward_prefetch` is `PRE`"),
    "a state": (fsdp(fsdp_state_dict_type="SHARDED"), "`fsdp_state_dict_type` is `SHARDED`"),
    "an offload": (fsdp(fsdp_offload_params="cpu"), "`fsdp_offload_params` is `cpu`"),
    "null for a switch": (fsdp(fsdp_use_orig_params=None), "`fsdp_use_orig_params` is `null`"),
    "a size": (fsdp(fsdp_auto_wrap_policy="SIZE_BASED_WRAP", fsdp_min_num_params="1e8"),
               "`fsdp_min_num_params` is `1e8`; expected a whole number"),
    "a version": (fsdp(fsdp_version=3), "`fsdp_version` is `3`; expected `1` or `2`"),
    "FSDP 2": (fsdp2(fsdp_reshard_after_forward=True, fsdp_use_orig_params=None,
                     fsdp_sharding_strategy="ZERO3"), ""),
    "a strategy for 2": (fsdp2(fsdp_reshard_after_forward="FULL_SHARD"),
                         "`fsdp_reshard_after_forward` is `FULL_SHARD`; expected true or false"),
    "a state for 2": (fsdp2(fsdp_state_dict_type="LOCAL_STATE_DICT"), "is `LOCAL_STATE_DICT`"),
    "a number for 2": (fsdp2(fsdp_state_dict_type=2), "`fsdp_state_dict_type` is `2`"),
    "offload alone": (fsdp2(fsdp_activation_checkpointing_offload=True),
                      "needs `fsdp_activation_checkpointing`"),
    "offload in 1": (fsdp(fsdp_activation_checkpointing=True,
                          fsdp_activation_checkpointing_offload=True), "`fsdp_version: 2`"),
    "offload in 2": (fsdp2(fsdp_activation_checkpointing=True,
                           fsdp_activation_checkpointing_offload=True), ""),
    "Megatron": (megatron(megatron_lm_tp_degree=2, megatron_lm_pp_degree=1,
                          megatron_lm_num_micro_batches=None,
                          megatron_lm_gradient_clipping=1.0), ""),
    "a degree": (megatron(megatron_lm_tp_degree="x"), "`megatron_lm_tp_degree` is `x`"),
    "no degree": (megatron(megatron_lm_pp_degree=None), "`megatron_lm_pp_degree` is `null`"),
    "a truth": (megatron(megatron_lm_sequence_parallelism="x"), "expected true or false"),
    "compiled": (compiled(dynamo_mode="reduce-overhead", dynamo_use_dynamic=True), ""),
    "a graph": (compiled(dynamo_use_fullgraph="full"), "`dynamo_use_fullgraph` is `full`"),
    "two machines": (machines("MULTI_CPU", main_process_ip="10.0.0.1", main_process_port=2950), ""),
    "no address": (machines("MULTI_CPU", main_process_port=2950), "`main_process_ip` is missing"),
    "no address of NO": (machines("NO", main_process_port=2950), "`main_process_ip` is missing"),
    "null machines": (machines("MULTI_GPU", num_machines=None), "`num_machines` is null"),
}  # fmt: skip
#: Rejected after the launcher's child: by the mesh of devices, by torch, by DeepSpeed's plugin.
LATER = {
    "a mode": (compiled(dynamo_mode="fast"), "`dynamo_mode` is `fast`"),
    "a backend of cp": ({**fsdp2(), "parallelism_config": {"parallelism_config_cp_backend": "x"}},
                        "`parallelism_config_cp_backend` is `x`; expected `torch`"),
    "a size of 0": ({**fsdp2(), "parallelism_config": {"parallelism_config_tp_size": 0}},
                    "expected a whole number of at least 1"),
    "two of a kind": ({**fsdp2(), "parallelism_config": {"parallelism_config_cp_size": 2,
                                                         "parallelism_config_sp_size": 2}},
                      "mutually exclusive"),
    "no shards": ({**fsdp2(), "parallelism_config": {"parallelism_config_dp_replicate_size": 2,
                                                     "parallelism_config_tp_size": 2}},
                  "which needs `parallelism_config_dp_shard_size` above 1"),
    "shards": ({**fsdp2(), "parallelism_config": {"parallelism_config_dp_replicate_size": 2,
                                                  "parallelism_config_dp_shard_size": 2,
                                                  "parallelism_config_tp_size": 2}}, ""),
    "clipping": ({**BASE, "distributed_type": "DEEPSPEED",
                  "deepspeed_config": {"zero_stage": 2, "gradient_clipping": "none"}},
                 "`gradient_clipping` is `none`; expected a number"),
    "auto clipping": ({**BASE, "distributed_type": "DEEPSPEED",
                       "deepspeed_config": {"zero_stage": 2, "gradient_clipping": "auto"}}, ""),
    "of another kind": ({**fsdp(fsdp_sharding_strategy="ZERO3"), "distributed_type": "MULTI_GPU"},
                        ""),
    "a replaced section": ({**compiled(dynamo_use_dynamic="x", dynamo_backend="INDUCTR"),
                            "dynamo_backend": "NO"}, ""),
    "a GPU for CPUs": ({**BASE, "distributed_type": "MULTI_CPU", "gpu_ids": "0"}, ""),
    "a starter": (machines("DEEPSPEED", main_process_ip="10.0.0.1", main_process_port=2950,
                           deepspeed_config={"deepspeed_multinode_launcher": "ssh"}),
                  "`deepspeed_multinode_launcher` is `ssh`; expected `pdsh`"),
    "a starter for one": ({**BASE, "distributed_type": "DEEPSPEED",
                           "deepspeed_config": {"deepspeed_multinode_launcher": "ssh"}}, ""),
    "not compiled": ({**compiled(dynamo_backend="INDUCTR", dynamo_use_dynamic="x"),
                      "distributed_type": "DEEPSPEED"}, ""),
    "one rank": ({**BASE, "distributed_type": "NO",
                  "parallelism_config": {"parallelism_config_tp_size": 0}}, ""),
    "on CPUs": ({**fsdp(fsdp_sharding_strategy="ZERO3"), "use_cpu": True}, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", [*ROWS, *LATER])
def test_a_value_is_judged_as_a_rank_reads_it(name: str) -> None:
    values, said = {**ROWS, **LATER}[name]
    found = rejected_value(values, {})
    assert said in ("" if found is None else found.said), found
    assert (found is None) == (said == "")


CHILD = """
import contextlib, io, json, os, runpy, sys
child = runpy.run_path(sys.argv[1])
import torch.distributed.fsdp
child["parser_of"]("accelerate")
for path in sys.argv[2:]:
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        heard, said = io.StringIO(), ""
        try:
            with contextlib.redirect_stderr(heard), contextlib.redirect_stdout(heard):
                child["accelerate"](["--config_file", path, "t.py"])
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said[:2000].encode())
        os._exit(0)
    os.close(write)
    print("said:" + json.dumps(os.read(read, 9999).decode()), flush=True)
    os.waitpid(pid, 0)
"""


@pytest.mark.train
def test_the_installed_accelerate_rejects_the_same_values(tmp_path: Path) -> None:
    paths = []
    for number, (values, _) in enumerate(ROWS.values()):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(values))
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", CHILD, parse_launch.__file__, *paths],
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("said:")]
    answers = dict(zip(ROWS, (json.loads(line[5:]) for line in lines), strict=True))
    wrong = {name: said for name, said in answers.items() if bool(said) != bool(ROWS[name][1])}
    # the child leaves out what is no error of a value
    assert wrong.keys() <= {"null machines"}, (wrong, done.stderr)


def test_null_ranks_have_to_be_passed() -> None:
    values = {**BASE, "distributed_type": "MULTI_GPU", "num_processes": None}
    assert rejected_value(values, {}) is None
    found = rejected_value(values, {}, launched=True)
    assert found is not None
    assert found.said.startswith("`num_processes` is missing")
    assert rejected_value(values, {"num_processes": "2"}, launched=True) is None


def test_an_option_of_the_command_replaces_a_value() -> None:
    bad = fsdp(fsdp_sharding_strategy="ZERO3")
    assert rejected_value(bad, {"fsdp_sharding_strategy": "FULL_SHARD"}) is None
    assert rejected_value(bad, {"fsdp_version": "2"}) is None
    alone = machines("NO", main_process_port=2950)
    assert rejected_value(alone, {"main_process_ip": "10.0.0.1"}) is None
    assert rejected_value(alone, {"num_machines": "1"}) is None


@pytest.mark.parametrize(
    ("values", "found"),
    [
        pytest.param(
            fsdp(fsdp_shardng_strategy=1, offload_param=True, note="x"),
            {"fsdp_config.fsdp_shardng_strategy": "fsdp_sharding_strategy",
             "fsdp_config.offload_param": "fsdp_offload_params"},
            id="misspelled",
        ),
        pytest.param(
            fsdp(fsdp_backward_prefetch_policy="NO_PREFETCH", min_num_params=1), {}, id="known"
        ),
        pytest.param(megatron(megatron_lm_tp_degre=2),
                     {"megatron_lm_config.megatron_lm_tp_degre": "megatron_lm_tp_degree"},
                     id="Megatron"),
        pytest.param({"parallelism_config": {"parallelism_config_tp_sizes": 2}},
                     {"parallelism_config.parallelism_config_tp_sizes":
                      "parallelism_config_tp_size"}, id="degrees"),
        pytest.param({"deepspeed_config": {"zero_stag": 2}}, {"zero_stag": "zero_stage"},
                     id="DeepSpeed"),
    ],
)  # fmt: skip
def test_keys_that_nothing_reads(values: dict[str, Any], found: dict[str, str]) -> None:
    assert unread(values) == found


def packages(*names: str) -> Packages:
    return Packages(packages={name: Package(name=name, version="1.15.0") for name in names})


@pytest.mark.parametrize(
    ("installed", "options", "stops"),
    [
        pytest.param(packages("torch", "accelerate"), {}, True, id="nothing"),
        pytest.param(packages("torchao", "accelerate"), {}, False, id="torchao"),
        pytest.param(
            packages("transformer-engine-cu12", "accelerate"), {}, False, id="Transformer Engine"
        ),
        pytest.param(
            packages("torch", "accelerate"), {"mixed_precision": "bf16"}, False, id="an option"
        ),
        pytest.param(Missing(why=Why.ABSENT, detail="x"), {}, False, id="not known"),
    ],
)
def test_fp8_needs_a_package(
    installed: Packages | Missing, options: dict[str, str], *, stops: bool
) -> None:
    command = LaunchCommand(launcher="accelerate", options=options)
    values = {**BASE, "distributed_type": "MULTI_GPU", "mixed_precision": "fp8"}
    found = launch_parser._of_accelerate(values, command, RunNeeds(), installed)
    assert (found is not None) == stops
    assert found is None or "neither Transformer Engine nor torchao" in found.error
