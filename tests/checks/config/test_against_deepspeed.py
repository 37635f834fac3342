"""The tables of kinds say what the installed DeepSpeed says, value by value."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from typing import Any

from dsdoctor.api import DsConfig, Finding, RunNeeds, Status
from dsdoctor.probes.config import parse_config
from dsdoctor.testing import judge
from dsdoctor_checks.config._kinds import _KINDS, refused_kinds
from dsdoctor_checks.config._tables import BATCH_KEYS
from dsdoctor_checks.config._truths import unchecked_booleans
from dsdoctor_checks.config.ds_config_batch_mismatch import batches_fit
from dsdoctor_checks.config.ds_config_ignored_setting import settings_have_effect
from dsdoctor_checks.config.ds_config_invalid_key import keys_are_known
from dsdoctor_checks.config.ds_config_unsupported_combination import settings_agree
from dsdoctor_checks.config.ds_config_wrong_type import values_are_of_their_kind
from tests.checks.config.rows import NOW

CHECKS: dict[Any, tuple[str, ...]] = {
    keys_are_known: ("ds_config", "deep_speed_install", "run_needs"),
    settings_agree: ("ds_config", "deep_speed_install"),
    values_are_of_their_kind: ("ds_config", "deep_speed_install", "run_needs"),
}
BASE = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Adam"}}
VALUES: tuple[Any, ...] = (
    True, False, 0, 1, -1, 7, 2.5, 1e9, "true", "cpu", "1e5", "12", "", [], [1], {}, {"x": 1}, None,
)  # fmt: skip
#: Reads numbers of ranks and configs as JSON lines, and prints whether DeepSpeed refuses each.
CHILD = """
import json, logging, sys
import deepspeed.comm
from deepspeed.runtime.config import DeepSpeedConfig
logging.disable(logging.CRITICAL)
answers = []
for line in sys.stdin:
    world, config = json.loads(line)
    # as in a job of that many ranks
    deepspeed.comm.get_rank = lambda *_, **__: 0
    deepspeed.comm.get_world_size = lambda *_, **__: world
    try:
        DeepSpeedConfig(config)
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error}")
    else:
        answers.append("")
print(json.dumps(answers), file=sys.__stdout__)
"""
#: Values that a setting accepts in principle, and that another rule refuses: those are not its kind.
OTHER_RULES = (
    "Extra inputs are not permitted",  # an object with a key that the section does not have
    "Input should be 'z1', 'z3'",  # words of a list
    "bf16_optimizer_states requires",
    "must be > 0 when dynamic loss scaling",
    "must be an integer, not bool",  # since 0.19.3
    "must be a number, not bool",
    "must be >= 0",
    "leaf_module.classes.0",
    "leaf_module.names.0",
    "leaf_module.name_suffixes.0",
    "is only supported with ZeRO Stage",
    "compute_grad_norm=false is supported",
    "Partial offloading only supported",
    "operand type(s) for |: 'bool' and 'float'",  # 1e9 is read as an integer here
    "operand type(s) for |: 'float' and 'bool'",
)


def config_with(key: str, value: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(BASE))
    *sections, name = key.split(".")
    holder = made
    for section in sections:
        holder = holder.setdefault(section, {})
    holder[name] = value
    return made


def answers_to(cases: list[tuple[int, dict[str, Any]]]) -> list[str]:
    """What DeepSpeed says to configs, each with a number of ranks; "" = it accepts the config."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="".join(json.dumps(case) + "\n" for case in cases),
        env={"DS_ACCELERATOR": "cpu", "WORLD_SIZE": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True, timeout=500,
    )  # fmt: skip
    answers: list[str] = json.loads(done.stdout.splitlines()[-1])
    return answers


def test_a_value_is_refused_where_deepspeed_refuses_it() -> None:
    keys = sorted(
        {
            ".".join(filter(None, (kind.section, name)))
            for kind in _KINDS
            for name in kind.names.split()
        }
    )
    cases = [(key, value) for key in keys for value in VALUES]
    assert len(cases) > 2000
    configs = [config_with(key, value) for key, value in cases]
    answers = answers_to([(1, config) for config in configs])
    differ = [
        (key, value, answer)
        for (key, value), config, answer in zip(cases, configs, answers, strict=True)
        if bool(answer) != _is_refused(parse_config(json.dumps(config)), key)
        and not any(words in answer for words in OTHER_RULES)
    ]
    assert differ == [], "\n".join(map(str, differ))


def _is_refused(config: DsConfig, key: str) -> bool:
    return key in {one.key for one in refused_kinds(config, None, filled=False)}


SIZES: tuple[Any, ...] = (None, 1, 2, 3, 8, 12, 0, -1, 2.0, 1.5, True, False, "4")
DIVISORS: tuple[Any, ...] = (None, 2, 0, -1, "2", 1.5)


def test_batch_sizes_are_refused_where_deepspeed_refuses_them() -> None:
    draw = random.Random(14)
    cases: list[tuple[int, dict[str, Any]]] = []
    for total, micro, steps in itertools.product(SIZES, repeat=3):
        given = dict(zip(BATCH_KEYS, (total, micro, steps), strict=True))
        given["sequence_parallel_size"] = draw.choice(DIVISORS)
        config = {key: value for key, value in given.items() if value is not None}
        cases.append((draw.choice((1, 2, 3, 8)), config))
    differ = [
        (world, config, answer)
        for (world, config), answer in zip(cases, answers_to(cases), strict=True)
        if bool(answer) != _stops(config, world)
    ]
    assert differ == [], "\n".join(map(str, differ))


def _stops(config: dict[str, Any], world: int) -> bool:
    parsed = parse_config(json.dumps(config))
    run = RunNeeds(expect_gpus=world, framework="native")
    facts: dict[str, Any] = {"ds_config": parsed, "run_needs": run, "deep_speed_install": NOW}
    return any(
        found.status is Status.FAIL
        for check in (batches_fit, values_are_of_their_kind)
        for found in judge(check, **facts).findings
    )


#: Parts of a config, of which each may forbid another or a stage of ZeRO.
PARTS: tuple[dict[str, Any], ...] = (
    {"fp16": {"enabled": "yes"}},
    {"fp16": {"fp16_master_weights_and_grads": True}},
    {"fp16": {"loss_scale": False}},
    {"bf16": {"enabled": 1}},
    {"bf16": None},
    {"bfloat16": {"enabled": True}},
    {"bfloat16": {"bf16_master_weights_and_grads": "true"}},
    {"bfloat16": {"bf16_optimizer_states": True}},
    {"bf16": {"bf16_optimizer_states": True, "bf16_master_weights_and_grads": True}},
    {"bfloat16": {"enable": True}},
    {"gradient_allreduce_op": "Sum"},
    {"gradient_allreduce_op": "auto"},
    {"compile": {"deepcompile": "on"}},
    {"compile": {"passes": ["z1", "autotp"]}},
    {"zero_optimization": {"zenflow": {"topk_ratio": 0.1}}},
    {"zero_optimization": {"cpu_offload": True}},
    {"zero_optimization": {"cpu_offload": "auto"}},
    {"zero_optimization": {"cpu_offload_param": True}},
    {"zero_optimization": {"offload_optimizer": {"device": "cpu", "ratio": "0.5"}}},
    {"zero_optimization": {"offload_param": {"device": "cpu"}}},
    {"zero_optimization": {"compute_grad_norm": "no"}},
    {"zero_optimization": {"gather_16bit_weights_on_model_save": True}},
    {"zero_optimization": {"stage3_gather_16bit_weights_on_model_save": True}},
    {"zero_optimization": {"stage3_gather_fp16_weights_on_model_save": True}},
    {"zero_optimization": {"offload_param": {"device": None}}},
    {"tensor_parallel": {"tp": {"tp_size": 2}}},
    {"tensor_parallel": {"tensor_parallel": {"tp_size": 2}}},
    {"tensor_parallel": {"tp": {"tp_sizes": 2}}},
    {"timers": {"throughput": {"enabled": False, "synchronised": True}}},
    {"weight_quantization": {"q_type": "sym"}},
    {"data_efficiency": {"data_sampling": {"curriculum_learning": {"enabled": True}}}},
    {"checkpoint": {"writer": {"type": "fast", "data_parallel": "node"}}},
    {"torch_autocast": {"dtype": "auto"}},
    {"expert_parallel": {"load_balance_coeff": 0.1}},
)
#: Effects that say that DeepSpeed refuses the config itself.
AT_ONCE = ("when the config is read", "DeepSpeed rejects the config")


def test_combinations_are_refused_where_deepspeed_refuses_them() -> None:
    pairs = itertools.combinations(PARTS, 2)
    configs = [
        _merged({**BASE, "zero_optimization": {"stage": stage}}, *pair)
        for stage, pair in itertools.product((0, 2, 3), pairs)
    ]
    assert len(configs) > 1500
    answers = answers_to([(1, config) for config in configs])
    missed, invented = [], []
    for config, answer in zip(configs, answers, strict=True):
        found = _failures(config)
        if answer and not found:
            missed.append((config, answer))
        if not answer and any(words in one.effect for one in found for words in AT_ONCE):
            invented.append((config, [one.message for one in found]))
    assert missed == [], "\n".join(map(str, missed[:20]))
    assert invented == [], "\n".join(map(str, invented[:20]))


def _merged(*parts: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            held = made.get(key)
            both = isinstance(held, dict) and isinstance(value, dict)
            made[key] = _merged(held or {}, value) if both else value
    return made


def _failures(config: dict[str, Any]) -> list[Finding]:
    facts: dict[str, Any] = {
        "ds_config": parse_config(json.dumps(config)),
        "deep_speed_install": NOW,
        "run_needs": RunNeeds(framework="native"),
    }
    return [
        found
        for check, names in CHECKS.items()
        for found in judge(check, **{name: facts[name] for name in names}).findings
        if found.status is Status.FAIL
    ]


ON = """
import json, logging, sys
import deepspeed.comm
from deepspeed.runtime.config import DeepSpeedConfig
logging.disable(logging.CRITICAL)
deepspeed.comm.get_rank = lambda *_, **__: 0
deepspeed.comm.get_world_size = lambda *_, **__: 1
config = DeepSpeedConfig(json.load(sys.stdin))
print(json.dumps([
    config.comms_config.comms_logger_enabled, config.datastates_config.enabled,
    config.checkpoint_config["writer"] is not None, bool(config.torch_autocast_enabled),
    bool(config.dump_state), bool(config.aio_config["single_submit"]),
]), file=sys.__stdout__)
"""


def test_what_counts_as_on_is_on_for_the_installed_deepspeed() -> None:
    off = {"enabled": False}
    made = {
        **BASE,
        "comms_logger": off, "datastates_ckpt": off, "checkpoint": {"writer": off},
        "torch_autocast": {"enabled": "false"}, "dump_state": "false",
        "aio": {"single_submit": "false"},
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", ON], input=json.dumps(made), capture_output=True, text=True,
        check=True, timeout=500,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == [True] * 6
    config = parse_config(json.dumps(made), "c")
    wrong = judge(
        values_are_of_their_kind, ds_config=config, deep_speed_install=NOW, run_needs=RunNeeds()
    )
    assert len(wrong.findings) == 3
    ignored = judge(settings_have_effect, ds_config=config, deep_speed_install=NOW)
    assert len(ignored.findings) == 3


KEPT = """
import json, logging, sys
import deepspeed.comm
from deepspeed.runtime.config import DeepSpeedConfig
logging.disable(logging.CRITICAL)
deepspeed.comm.get_rank = lambda *_, **__: 0
deepspeed.comm.get_world_size = lambda *_, **__: 1

def holds(value, deep=6):
    if isinstance(value, str) or not deep:
        return value == "false"
    held = value if isinstance(value, (list, tuple)) else ()
    held = value.values() if isinstance(value, dict) else held
    held = vars(value).values() if hasattr(value, "__dict__") else held
    return any(holds(one, deep - 1) for one in held)

lost = []
for key, config in json.load(sys.stdin).items():
    try:
        made = DeepSpeedConfig(config)
    except AssertionError:  # the feature is on, and something that it needs is missing
        continue
    del made._param_dict
    if not holds(made):
        lost.append(key)
print(json.dumps(lost), file=sys.__stdout__)
"""


def test_the_installed_deepspeed_keeps_a_switch_in_quotes_as_it_stands() -> None:
    configs = {key: config_with(key, "false") for key in unchecked_booleans(NOW.version)}
    done = subprocess.run(
        [sys.executable, "-c", KEPT], input=json.dumps(configs), capture_output=True, text=True,
        check=True, timeout=500,
    )  # fmt: skip
    assert len(configs) > 20
    assert json.loads(done.stdout.splitlines()[-1]) == []
