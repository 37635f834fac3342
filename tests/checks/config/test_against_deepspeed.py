"""The tables of kinds say what the installed DeepSpeed says, value by value."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from dsdoctor.api import DsConfig
from dsdoctor.probes.config import parse_config
from dsdoctor_checks.config._kinds import _KINDS, refused_kinds

BASE = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Adam"}}
VALUES: tuple[Any, ...] = (
    True, False, 0, 1, -1, 7, 2.5, 1e9, "true", "cpu", "1e5", "12", "", [], [1], {}, {"x": 1}, None,
)  # fmt: skip
#: Reads configs as JSON lines, and prints for each whether DeepSpeed refuses it.
CHILD = """
import json, logging, sys
from deepspeed.runtime.config import DeepSpeedConfig
logging.disable(logging.CRITICAL)
answers = []
for line in sys.stdin:
    try:
        DeepSpeedConfig(json.loads(line))
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
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input="".join(json.dumps(one) + "\n" for one in configs),
        env={"DS_ACCELERATOR": "cpu", "WORLD_SIZE": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True, timeout=500,
    )  # fmt: skip
    answers = json.loads(done.stdout.splitlines()[-1])
    differ = [
        (key, value, answer)
        for (key, value), config, answer in zip(cases, configs, answers, strict=True)
        if bool(answer) != _is_refused(parse_config(json.dumps(config)), key)
        and not any(words in answer for words in OTHER_RULES)
    ]
    assert differ == [], "\n".join(map(str, differ))


def _is_refused(config: DsConfig, key: str) -> bool:
    return key in {one.key for one in refused_kinds(config, None)}
