"""`script-option-refused`: what the script's own parser says of the command."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ScriptOptions
from dsdoctor.testing import assert_fail, judge
from dsdoctor_checks.launch import script_option_refused
from tests.checks.machines import ABSENT
from tests.checks.python.support import packages

CHECK = script_option_refused.options_are_known


def judged(**fields: Any) -> Any:
    return judge(
        CHECK,
        script_options=ScriptOptions(script="t.py", launcher="deepspeed", **fields),
        packages=packages(transformers="5.0.0"),
    )


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        pytest.param(
            {"unknown": ("--bf16",)},
            "`t.py` has no option `--bf16`",
            "remove it, or add it to the parser of the script",
            id="unknown",
        ),
        pytest.param(
            {"unknown": ("--local_rank", "--a", "--bb"), "near": {"--bb": "--bbb"},
             "by_launcher": "--local_rank"},
            "`t.py` has no option `--a` and `--bb`",
            "replace `--bb` with `--bbb`, or remove them, or add them to the parser of the script",
            id="several",
        ),
        pytest.param(
            {"unknown": ("--evaluation_strategy",), "of": "transformers",
             "near": {"--evaluation_strategy": "--eval_strategy"}},
            "`t.py` has no option `--evaluation_strategy`",
            "replace `--evaluation_strategy` with `--eval_strategy`, or install the releases that the"
            " command was written for; transformers 5.0.0 is installed",
            id="renamed",
        ),
        pytest.param(
            {"unknown": ("--local_rank",), "by_launcher": "--local_rank"},
            "the launcher passes `--local_rank` to `t.py`, whose parser does not accept it",
            'add `parser.add_argument("--local_rank", type=int)` to the script, or start it with'
            " `--no_local_rank` and read the variable LOCAL_RANK",
            id="of the launcher",
        ),
        pytest.param(
            {"refusal": "argument --lr: invalid float value: 'x'"},
            "`t.py` rejects its arguments: `argument --lr: invalid float value: 'x'`",
            "correct the arguments of the script",
            id="a value",
        ),
    ],
)  # fmt: skip
def test_what_fails(fields: dict[str, Any], message: str, hint: str) -> None:
    finding = assert_fail(judged(**fields))
    assert (finding.message, finding.hint) == (message, hint)


def test_what_the_parser_takes_is_ok() -> None:
    assert judged(by_launcher="--local_rank").status == "ok"


def test_without_packages() -> None:
    options = ScriptOptions(script="t.py", of="transformers", unknown=("--x",))
    found = judge(CHECK, script_options=options, packages=ABSENT)
    assert assert_fail(found).hint == "remove it, or add it to the parser of the script"
