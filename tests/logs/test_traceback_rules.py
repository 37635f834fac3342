"""Functions that raise for one reason alone, and what is said where no condition fits."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Rule, Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
HEAD = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n'


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


def trace(*frames: tuple[str, str], error: str) -> str:
    told = "".join(
        f'  File "{SITE}{file}", line 7, in {name}\n    x = y\n' for file, name in frames
    )
    return f"{HEAD}{told}{error}\n"


@pytest.mark.parametrize(
    "rule", KNOWN.rules, ids=[f"{one.condition}: {one.rule.function}" for one in KNOWN.rules]
)
def test_a_rule_names_its_condition(rule: Rule) -> None:
    assert rule.rule.source
    found = read(rule.rule.example + "\n")
    assert [cause.condition for cause in found.causes[:1]] == [rule.condition]


def test_another_exception_of_that_function_is_not_its_condition() -> None:
    text = trace(("torch/utils/cpp_extension.py", "_check_cuda_version"), error="KeyError: 'x'")
    assert read(text).outcome is Outcome.UNRECOGNISED


@pytest.mark.parametrize(
    ("place", "error"),
    [
        (("deepspeed/runtime/config.py", "_do_error_check"), "AssertionError: a must match b"),
        (("deepspeed/runtime/engine.py", "train_batch"), "AssertionError: requires gradients"),
        (("deepspeed/runtime/zero/stage3.py", "step"), "RuntimeError: the trace went astray"),
        (("torch/distributed/rendezvous.py", "x"), "ValueError: an odd word"),
        (("transformers/trainer.py", "train"), "ValueError: an odd word"),
    ],
)
def test_the_place_of_an_exception_names_no_cause(place: tuple[str, str], error: str) -> None:
    found = read("[INFO] DeepSpeed info: version=0.15.1\n" + trace(place, error=error))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.causes == ()
    raised = found.raised_by
    assert raised is not None
    assert (raised.product, raised.file, raised.line, raised.function) == (
        place[0].split("/")[0], place[0], 7, place[1],
    )  # fmt: skip
    assert raised.called_from == "/home/me/train.py:9"


def test_the_line_can_be_read_at_the_release_that_the_log_reports() -> None:
    text = "[INFO] DeepSpeed info: version=0.15.1, git-hash=x\n" + trace(
        ("deepspeed/runtime/pipe/engine.py", "train_batch"), error="RuntimeError: odd"
    )
    raised = read(text).raised_by
    assert raised is not None
    assert raised.version == "0.15.1"
    assert raised.url == (
        "https://github.com/deepspeedai/DeepSpeed/blob/v0.15.1/deepspeed/runtime/pipe/engine.py#L7"
    )


def test_what_the_user_raises_is_the_users() -> None:
    found = read(f"{HEAD}KeyError: 'input_ids'\n")
    assert found.outcome is Outcome.USER_CODE
    assert found.raised_by is None
