"""`repair-ds-config` is offered where it corrects something, and nowhere else."""

from __future__ import annotations

import json

import pytest

from dsdoctor.api import DeepSpeedInstall, Reach, RepairFiles, RunNeeds
from dsdoctor.fixes import planner
from dsdoctor.judge import judge
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.fix_plan import Findings, FixRequest, Plan
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.config import parse_config
from tests.fixes.cases import REGISTRY

FIX = "repair-ds-config"
TRAINER = ("torchrun", "--nproc_per_node", "2", "train.py", "--per_device_train_batch_size", "2")


def offers_and_plans(text: str, argv: tuple[str, ...] = ()) -> dict[str, tuple[bool, bool]]:
    """Condition to whether `check` offers the fix, and whether the fix then has a plan."""
    config = parse_config(text)
    run = RunNeeds(
        config_path="ds.json",
        config=config.parsed,
        gpus=("0", "1"),
        command=argv,
        framework="hf",
    )
    facts = [run, config, DeepSpeedInstall(version="0.19.8")]
    facts.append(RepairFiles(texts={"config": ("/job/ds.json", text)}))
    if argv:
        facts.append(parse_command(argv))
    snapshot = snapshots.of(facts)
    units = [unit for unit in REGISTRY if FIX in unit.condition.fixes]
    found = {}
    for one in judge(snapshot, units, REGISTRY).findings:
        if one.status in planner.BAD:
            made = planner.plan_one(
                REGISTRY.fix(FIX),
                snapshot,
                Findings(findings=(one,)),
                FixRequest(reach=Reach.HOME),
            )
            found[one.condition] = (FIX in one.fixes, isinstance(made, Plan))
    return found


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            {"zero_optimization": {"overlap_com": True}},
            {"ds-config-invalid-key": True},
            id="a misspelt key has one meaning",
        ),
        pytest.param(
            {"my_setting": 3}, {"ds-config-invalid-key": False}, id="an unknown key has none"
        ),
        pytest.param(
            {"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_min_lr": 0.1}}},
            {"ds-config-invalid-key": False},
            id="a parameter in another unit cannot be renamed",
        ),
        pytest.param(
            {"optimizer": {"type": "AdmW", "params": {"lr": 1e-5}}},
            {"ds-config-unknown-optimizer": True},
            id="a misspelt optimizer has one meaning",
        ),
        pytest.param(
            {"optimizer": {"type": "Sophia", "params": {"lr": 1e-5}}},
            {"ds-config-unknown-optimizer": False},
            id="an optimizer that DeepSpeed does not have is a decision",
        ),
        pytest.param(
            {"gradient_clipping": "1.0"},
            {"ds-config-wrong-type": True},
            id="a number in quotes is that number",
        ),
        pytest.param(
            {"fp16": True}, {"ds-config-wrong-type": False}, id="a switch is no object in braces"
        ),
        pytest.param(
            {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2,
             "gradient_accumulation_steps": 3},
            {"ds-config-batch-mismatch": False},
            id="a total that no number of ranks can reach is a decision",
        ),
        pytest.param(
            {"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2,
             "gradient_accumulation_steps": 1},
            {"ds-config-batch-mismatch": True},
            id="a total for other ranks becomes that of these ranks",
        ),
        pytest.param(
            {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}},
            {"ds-config-ignored-setting": True},
            id="a setting without effect is removed",
        ),
    ],
)  # fmt: skip
def test_it_is_offered_where_it_has_a_plan(
    config: dict[str, object], expected: dict[str, bool]
) -> None:
    whole = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 0}, **config}
    for text in (json.dumps(whole), json.dumps(whole, indent=2)):
        found = offers_and_plans(text)
        assert found == {name: (offer, offer) for name, offer in expected.items()}


def test_a_value_that_the_command_contradicts_is_left_to_the_command() -> None:
    text = (
        '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto",'
        ' "zero_optimization": {"stage": 1}}'
    )
    assert offers_and_plans(text, TRAINER) == {"ds-config-batch-mismatch": (True, True)}


def test_a_misspelt_setting_of_a_section_that_is_not_validated_is_renamed() -> None:
    """Removing it would leave off what the file asks for."""
    text = '{"flops_profiler": {\n"enable": true\n}}'
    config = parse_config(text)
    snapshot = snapshots.of(
        [
            RunNeeds(config_path="ds.json", config=config.parsed, gpus=("0",)),
            config,
            RepairFiles(texts={"config": ("/job/ds.json", text)}),
        ]
    )
    units = [u for u in REGISTRY if u.condition.name == "ds-config-ignored-setting"]
    (finding,) = judge(snapshot, units, REGISTRY).findings
    made = planner.plan_one(
        REGISTRY.fix(FIX), snapshot, Findings(findings=(finding,)), FixRequest(reach=Reach.HOME)
    )
    assert isinstance(made, Plan)
    assert "`flops_profiler.enable` is renamed to `enabled`" in str(made)
