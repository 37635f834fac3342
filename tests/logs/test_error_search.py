"""Texts that quote a part of a message, as people type them into `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dsdoctor.logs import error_index, error_lookup
from dsdoctor.logs.error_search import search
from tests.support.error_index import KNOWN, read

MESSAGE = (
    "The optimizer was stepped before its partitions were gathered on this rank. Gather the "
    "partitions with the coordinator first, or disable overlap of the reduction in the strategy."
)
ANSWER = "Gather first"
COMMON = "You need to set this value to the size that is used for this model when loading"


def _stored(folder: Path, messages: Mapping[str, str], product: str = "deepspeed") -> None:
    """An index of messages without holes, each with its answer."""
    rows, labels = [f"#product {product}", "#made 2026-01-01", "#releases 1.0", ">a.py"], []
    for number, message in enumerate(messages):
        kind, _, text = message.rpartition(": ")
        words = error_lookup.words_of(text)
        runs = [words[at : at + 6] for at in range(0, len(words), 6)]
        chunks = " ".join(f"{len(run)}:{error_lookup.digest(run)}" for run in runs)
        rows.append(f"{kind or 'ValueError'}\tf{number}\t0\t^{chunks}")
    text = "\n".join(rows) + "\n"
    for entry, answer in zip(error_index.parse(text)[1], messages.values(), strict=True):
        labels.append(f"refusal {answer}\n\t{entry.key} f\n" if answer else "")
    (folder / f"{product}.index").write_text(text)
    (folder / f"{product}.labels").write_text("".join(labels))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MESSAGE, id="whole"),
        pytest.param(MESSAGE.partition(". ")[0], id="first sentence"),
        pytest.param(MESSAGE[:60], id="cut in a word"),
        pytest.param(f"RuntimeError: {MESSAGE}"[:80], id="80 columns"),
        pytest.param(f"[rank3]: torch.x.RuntimeError: {MESSAGE}"[:95], id="with the prefix of a rank"),
        pytest.param(MESSAGE[MESSAGE.index("on this") : MESSAGE.index("overlap")], id="middle"),
        pytest.param(MESSAGE[MESSAGE.index("coordinator") :], id="end"),
    ],
)  # fmt: skip
def test_a_part_of_a_message_is_enough(tmp_path: Path, text: str) -> None:
    _stored(tmp_path, {f"RuntimeError: {MESSAGE}": ANSWER})
    found = search(tmp_path, text)
    assert found is not None
    assert found.label is not None
    assert found.label.text == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The optimizer was stepped before", id="fewer words than are stored together"),
        pytest.param(
            "My own note says that the run was slow, that the optimizer was stepped before its "
            "partitions, and many other things happened on that day which have nothing to do with "
            "what the message of the product is about",
            id="a small part of a long text",
        ),
        pytest.param(
            "its strategy in reduction the of overlap disable or first coordinator the with "
            "partitions the gather rank this on gathered were partitions",
            id="the words in another order",
        ),
    ],
)
def test_a_text_that_only_shares_words_quotes_nothing(tmp_path: Path, text: str) -> None:
    _stored(tmp_path, {f"RuntimeError: {MESSAGE}": ANSWER})
    assert search(tmp_path, text) is None


def test_common_words_are_no_part_of_a_message(tmp_path: Path) -> None:
    _stored(tmp_path, {COMMON: ANSWER})
    part = "You need to set this value to the size that is"
    assert search(tmp_path, part) is None
    assert search(tmp_path, COMMON) is not None, "the whole of a long message tells"


def test_an_exception_of_a_product_tells_whose_message_it_is(tmp_path: Path) -> None:
    _stored(tmp_path, {f"PartitionError: {COMMON}": ANSWER, f"BadParameter: {COMMON}": ANSWER})
    part = "You need to set this value to the size that is"
    assert search(tmp_path, f"PartitionError: {part}") is not None
    assert search(tmp_path, f"ValueError: {part}") is None


def test_a_part_of_several_messages_has_no_answer_unless_its_type_chooses(tmp_path: Path) -> None:
    first = "The optimizer was stepped before its partitions were gathered on this rank and {} now"
    _stored(
        tmp_path,
        {
            f"RuntimeError: {first.format('gather them')}": "One",
            f"TypeError: {first.format('leave them out')}": "Two",
        },
    )
    part = "The optimizer was stepped before its partitions were gathered on this rank"
    assert search(tmp_path, part) is None
    found = search(tmp_path, f"TypeError: {part}")
    assert found is not None
    assert found.label is not None
    assert found.label.text == "Two"


def test_a_message_without_an_answer_hides_none(tmp_path: Path) -> None:
    _stored(tmp_path, {f"RuntimeError: {MESSAGE}": ANSWER, f"AssertionError: {MESSAGE}": ""})
    assert search(tmp_path, MESSAGE) is not None


LONG = (
    "MisconfigurationException: Unknown configuration for model optimizers. Output from "
    "`model.configure_optimizers()` should be one of:\n"
    " * `Optimizer`\n\n * [`Optimizer`]\n\n * ([`Optimizer`], [`LRScheduler`])\n\n"
    ' * {"optimizer": `Optimizer`, (optional) "lr_scheduler": `LRScheduler`}\n'
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(LONG, True, id="a message of eight lines"),
        pytest.param(
            LONG.replace(" * [", "Traceback (most recent call last):\n * ["), False,
            id="a traceback within it",
        ),
        pytest.param(
            "\n".join(f"[rank0]: {line}\n[rank1]: at step 7" for line in LONG.splitlines()), True,
            id="another rank in between",
        ),
    ],
)  # fmt: skip
def test_a_message_of_many_lines_is_read_to_its_end(text: str, *, found: bool) -> None:
    said = read(text).explained
    assert (said is not None and said.product == "lightning") is found


def test_the_name_of_a_product_tells_in_front_of_a_message(tmp_path: Path) -> None:
    _stored(tmp_path, {COMMON: ANSWER})
    part = "You need to set this value to the size that is"
    assert search(tmp_path, f"deepspeed: {part}") is not None
    assert search(tmp_path, f"{part} in deepspeed") is None


LOGGER = "[2026-11-30 12:00:00,123] [WARNING] [a.py:222:f0] "


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        pytest.param(f"{LOGGER}Bad text of the file: x", True, id="place"),
        pytest.param(f"node-1: {LOGGER}[Rank 0] Bad text of the file: x", True, id="host and rank"),
        pytest.param("[WARNING|a.py:9] 2026-11-30 12:00:00,123 >> Bad text of the file", True,
                     id="place of transformers' logger"),
        pytest.param(f"{LOGGER.replace('f0', 'g')}Bad text of the file: x", False,
                     id="another function"),
        pytest.param(f"{LOGGER.replace('a.py', 'b.py')}Bad text of the file: x", False,
                     id="another file"),
        pytest.param("Bad text of the file: x", False, id="no place"),
        pytest.param(f"{LOGGER}Bad text", False, id="a part of it"),
    ],
)  # fmt: skip
def test_the_place_that_a_logger_prints_tells_whose_message_it_is(
    tmp_path: Path, text: str, *, is_found: bool
) -> None:
    _stored(tmp_path, {"log.warning: Bad text of the file": ANSWER})
    assert (search(tmp_path, text) is not None) is is_found


def test_the_place_that_a_logger_prints_chooses_among_messages(tmp_path: Path) -> None:
    _stored(
        tmp_path,
        {"log.error: Bad text of the file": "One", "ValueError: Bad text of the file": "Two"},
    )
    found = search(tmp_path, f"{LOGGER.replace('f0', 'f1')}Bad text of the file")
    assert found is not None
    assert found.label is not None
    assert found.label.text == "Two"


def test_native_code_prints_error_as_a_word_of_its_own() -> None:
    words = "Error: Adam rollback currently only supports float32 tensors"
    assert KNOWN.answer_text(words) is not None
    assert KNOWN.answer_text(words.replace("Error", "ValueError")) is None


def test_a_sentence_that_deepspeed_logs_has_its_answer() -> None:
    found = KNOWN.answer_text("Unable to import 'psutils', please install package")
    assert found is not None
    assert "`psutil`" in found.text
