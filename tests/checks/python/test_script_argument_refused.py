"""`script-argument-refused`: arguments that an installed package does not take."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ScriptCalls, WrongArgument
from dsdoctor.testing import assert_fail, judge
from dsdoctor_checks.python import script_argument_refused
from tests.checks.python.support import packages

CHECK = script_argument_refused.arguments_are_taken
OLD = WrongArgument(
    line=7, called="TrainingArguments", argument="evaluation_strategy", near="eval_strategy",
    package="transformers",
)  # fmt: skip
GONE = WrongArgument(
    line=7, called="TrainingArguments", argument="logging_dir", package="transformers"
)
LATER = WrongArgument(line=9, called="Trainer", argument="x", package="transformers")


def judged(*wrong: WrongArgument) -> Any:
    calls = ScriptCalls(script="t.py", wrong=wrong)
    return judge(CHECK, script_calls=calls, packages=packages(transformers="5.0.0"))


def test_a_script_that_fits_is_ok() -> None:
    assert judged().status == "ok"


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        pytest.param(
            (OLD,),
            "`TrainingArguments` of transformers 5.0.0 has no argument `evaluation_strategy`"
            " (`t.py`, line 7)",
            "replace `evaluation_strategy` with `eval_strategy`, or install the release of"
            " transformers that the script was written for",
            id="renamed",
        ),
        pytest.param(
            (OLD, GONE, LATER),
            "`TrainingArguments` of transformers 5.0.0 has no arguments `evaluation_strategy` and"
            " `logging_dir` (`t.py`, line 7); a later call fails too",
            "replace `evaluation_strategy` with `eval_strategy`, or remove what it does not accept, or"
            " install the release of transformers that the script was written for",
            id="several",
        ),
        pytest.param(
            (LATER,),
            "`Trainer` of transformers 5.0.0 has no argument `x` (`t.py`, line 9)",
            "remove what it does not accept, or install the release of transformers that the script"
            " was written for",
            id="removed",
        ),
    ],
)
def test_what_fails(wrong: tuple[WrongArgument, ...], message: str, hint: str) -> None:
    finding = assert_fail(judged(*wrong))
    assert (finding.message, finding.hint) == (message, hint)
