"""What optimizers keep: the table against torch's own optimizers and DeepSpeed's Muon."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.recommend import memory, optimizers
from dsdoctor.recommend.config_setting import left_out, setting_of
from dsdoctor.recommend.models import PRESETS
from dsdoctor.recommend.optimizers import OPTIMIZERS
from dsdoctor.recommend.planning import PlanOptions, machine_of, recommend
from dsdoctor.recommend.setting import Setting

CHILD = Path(__file__).with_name("children") / "optimizers.py"
CASES: dict[str, dict[str, Any]] = {
    "sgd": {"type": "SGD", "params": {"lr": 0.1}},
    "sgd, momentum": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}},
    "sgd, decay": {"type": "SGD", "params": {"lr": 0.1, "weight_decay": 0.1}},
    "adagrad": {"type": "Adagrad", "params": {}},
    "adafactor": {"type": "Adafactor", "params": {}},
    "rmsprop": {"type": "RMSprop", "params": {}},
    "rmsprop, all": {"type": "RMSprop", "params": {"centered": True, "momentum": 0.9}},
    "adadelta": {"type": "Adadelta", "params": {}},
    "adamax": {"type": "Adamax", "params": {}},
    "nadam": {"type": "NAdam", "params": {}},
    "radam": {"type": "RAdam", "params": {}},
}
LLAMA = PRESETS["llama-3-8b"]


@pytest.mark.train
def test_the_table_is_what_torchs_optimizers_keep(tmp_path: Path) -> None:
    """State to the byte, temporaries of a step within a scalar, on the flat tensor of ZeRO."""
    asked = tmp_path / "cases.json"
    asked.write_text(json.dumps(CASES), "utf-8")
    done = subprocess.run(
        [sys.executable, str(CHILD), str(asked)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    table = {
        name: [found.state, found.step]
        for name, case in CASES.items()
        for found in [optimizers.named(case["type"], case["params"])]
    }
    assert seen == table


def test_an_8_bit_state_is_two_bytes_and_a_scale_for_each_block() -> None:
    """bitsandbytes: two tensors of uint8, and for each an fp32 number for 256 values."""
    elements = 10 * 256
    assert OPTIMIZERS["adamw8bit"].state * elements == 2 * elements + 2 * 10 * 4

    def state(kind: str) -> int:
        kept = OPTIMIZERS[kind]
        setting = Setting(stage=2, world=8, state_bytes=kept.state, step_bytes=kept.step)
        need = memory.estimate(LLAMA, setting)
        return sum(item.bytes for item in need.gpu if item.name == "optimizer")

    saved = state("adamw") - state("adamw8bit")
    assert saved == pytest.approx((8 - 2.03125) * LLAMA.parameters / 8, rel=1e-6)


def test_a_plan_leaves_an_8_bit_optimizer_to_the_script() -> None:
    plan = recommend(machine_of(gpu_gib=80), LLAMA, PlanOptions(optimizer="adamw8bit", stage=2))
    assert "optimizer" not in plan.ds_config
    assert plan.ds_config["zero_allow_untested_optimizer"] is True
    notes = {reason.subject: reason.text for reason in plan.reasons}
    assert "the script must create `bitsandbytes.optim.AdamW8bit`" in notes["optimizer"]


def test_muon_keeps_adams_state_for_what_is_no_matrix_of_a_block() -> None:
    kept = OPTIMIZERS["muon"]
    setting = Setting(world=8, state_bytes=kept.state, outer_bytes=kept.outer)
    outer = 2 * LLAMA.vocab * LLAMA.hidden + 65 * LLAMA.hidden
    assert LLAMA.outer_parameters == outer
    found = optimizers.state_bytes(LLAMA, LLAMA.parameters, setting)
    assert found == 4 * (LLAMA.parameters - outer) + 8 * outer
    wide = Setting(precision="fp32", state_bytes=kept.state, outer_bytes=kept.outer)
    assert optimizers.state_bytes(LLAMA, LLAMA.parameters, wide) == 8 * LLAMA.parameters
    # adapters are matrices; the embedding that is trained beside them is not one of a block
    adapters = Setting(lora_rank=16, saved=1000, outer_bytes=4, state_bytes=4)
    assert optimizers.state_bytes(LLAMA, 5000, adapters) == 4 * 4000 + 8 * 1000


def test_a_config_says_what_its_optimizer_keeps() -> None:
    def of(**block: Any) -> Setting:
        return setting_of({"optimizer": block}, world=8, nodes=1, on_gpu=True, pinned=True)

    assert of(type="SGD").state_bytes == 0
    assert of(type="SGD", params={"momentum": 0.9}).state_bytes == 4
    assert of(type="AdamW", params={"amsgrad": True}).state_bytes == 12
    assert of(type="Adafactor", params="none").step_bytes == 4
    assert (of(type="Muon").state_bytes, of(type="Muon").outer_bytes) == (4, 4)
    assert of(type="Unheard").state_bytes == 8
    named = [list(left_out({"optimizer": {"type": kind}})) for kind in ("RAdam", "Unheard")]
    assert named == [[], ["the state of optimizer Unheard (taken to be Adam's)"]]
