"""The sentences that the error index has for messages of a condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, error_index, error_lookup, signatures_of

KNOWN = signatures_of(packs.load(builtin_only=True))
FOLDER = Path(packs.__file__).parent.parent.parent / "checks" / "dsdoctor_checks" / "_error_index"
#: Refusals that signatures with a message of their own word.
WORDED_BY_SIGNATURES = {"310d4b3712", "334a818132", "2c31b41e67"}


def test_a_general_condition_has_a_sentence_for_each_refusal() -> None:
    refusals = [
        (product, key, label.text)
        for product in error_lookup.products(FOLDER)
        for key, label in error_index.load(FOLDER, product).labels.items()
        if label.kind == "ds-config-unsupported-combination"
    ]
    assert len(refusals) > 100
    assert [row for row in refusals if not row[2] and row[1] not in WORDED_BY_SIGNATURES] == []


@pytest.mark.parametrize(
    ("place", "function", "line", "said"),
    [
        pytest.param(
            "runtime/zero/stage3.py",
            "__init__",
            "ValueError: Muon and reduce scatter cannot be used together",
            "Muon does not work with `reduce_scatter`: switch `reduce_scatter` off",
            id="no signature fits",
        ),
        pytest.param(
            "runtime/engine.py",
            "_configure_basic_optimizer",
            "AssertionError: 1bit-Lamb is not compatible with ZeRO",
            "1-bit LAMB does not work with ZeRO: set `stage` to 0 or use another optimizer",
            id="a general pattern fits, among others",
        ),
    ],
)
def test_a_cause_has_the_sentence_of_its_message(
    place: str, function: str, line: str, said: str
) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/deepspeed/{place}", line 7, in {function}\n'
        f"    raise\n{line}\n"
    )
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert [(one.condition, one.message) for one in found.causes] == [
        ("ds-config-unsupported-combination", said)
    ]
