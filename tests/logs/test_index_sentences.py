"""The sentences that the error index has for messages of a condition."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, error_index, error_lookup, signatures_of
from dsdoctor.model.diagnosis import Outcome

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
    ("place", "function", "line", "said", "hint"),
    [
        pytest.param(
            "runtime/zero/stage3.py",
            "__init__",
            "ValueError: Muon and reduce scatter cannot be used together",
            "Muon does not work with `reduce_scatter`",
            "switch `reduce_scatter` off",
            id="no signature fits",
        ),
        pytest.param(
            "runtime/engine.py",
            "_configure_basic_optimizer",
            "AssertionError: 1bit-Lamb is not compatible with ZeRO",
            "1-bit LAMB does not work with ZeRO",
            "set `stage` to 0 or use another optimizer",
            id="a general pattern fits, among others",
        ),
        pytest.param(
            "runtime/tensor_parallel/init_utils.py",
            "merge_tp_model_init_into_config",
            "ValueError: tensor_parallel.tp must be a dict when provided.",
            '`tensor_parallel.tp` must be a section, such as `{"tp_size": 2}`',
            "correct the value named in the error",
            id="the sentence contains braces",
        ),
        pytest.param(
            "runtime/config.py",
            "_batch_assertion",
            "AssertionError: Train batch size: 0 has to be greater than 0",
            "`train_batch_size` is 0 or less",
            "set it to micro-batch * accumulation * ranks, or leave it out",
            id="a pattern of the same condition fits",
        ),
        pytest.param(
            "launcher/runner.py",
            "_parse_hostfile",
            "ValueError: Hostfile contains multiple entries for node-3, unable to proceed with"
            " launching",
            "The hostfile names a host twice",
            "leave one line per host",
            id="the hint of the condition is about something else",
        ),
    ],
)
def test_a_cause_has_the_sentence_and_the_hint_of_its_message(
    place: str, function: str, line: str, said: str, hint: str
) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        f'    main()\n  File "/x/site-packages/deepspeed/{place}", line 7, in {function}\n'
        f"    raise\n{line}\n"
    )
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert [(one.message, one.hint) for one in found.causes] == [(said, hint)]


def test_a_sentence_without_a_hint_has_that_of_its_condition() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        '    main()\n  File "/x/site-packages/deepspeed/runtime/config.py", line 7, in'
        " get_gradient_allreduce_op\n    raise\n"
        "ValueError: Invalid gradient_allreduce_op. Supported operations: ['mean', 'sum']. Got: 3\n"
    )
    (cause,) = diagnose([Source(name="log", data=text.encode())], KNOWN).causes
    assert cause.message == "`gradient_allreduce_op` must be `mean` or `sum`"
    assert cause.hint == KNOWN.conditions["ds-config-wrong-type"].hint


def test_words_that_the_class_of_an_exception_adds_are_in_the_index() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/serve.py", line 9, in <module>\n'
        "    engine.put(uids, tokens)\n"
        '  File "/x/site-packages/deepspeed/inference/v2/engine_v2.py", line 126, in put\n'
        "    raise SchedulingError(schedule_check)\n"
        "deepspeed.inference.v2.scheduling_utils.SchedulingError: Batch scheduling failed with"
        " result SchedulingResult.BatchTokenLimitExceeded\n"
    )
    found = diagnose([Source(name="log", data=text.encode())], KNOWN)
    assert found.explained is not None
    assert "`max_ragged_batch_size` (`BatchTokenLimitExceeded`)" in found.explained.text


def test_settings_and_own_checks_of_a_collator_are_not_the_scripts_data() -> None:
    for function, words in (
        ("__post_init__", "mlm_probability should be between 0 and 1."),
        ("_whole_word_mask", "Length of covered_indexes is not equal to length of masked_lms."),
    ):
        text = (
            "Traceback (most recent call last):\n"
            '  File "/home/me/train.py", line 9, in main\n    loader()\n'
            f'  File "/x/site-packages/transformers/data/data_collator.py", line 9, in {function}\n    raise x\nValueError: {words}\n'
        )
        found = diagnose([Source(name="log", data=text.encode())], KNOWN)
        assert found.outcome is Outcome.UNRECOGNISED
        assert found.explained is not None
