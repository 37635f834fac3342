"""Words of the error index that many programs use."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.logs import error_index, error_lookup
from dsdoctor.logs.error_index import ErrorIndex, Header, Label
from dsdoctor.logs.same_words import in_order
from tests.support.command import clean_environment, dsdoctor
from tests.support.error_index import entry, error, index, read

FOLDER = Path(packs.__file__).parent.parent.parent / "checks" / "dsdoctor_checks" / "_error_index"
COMMON = "limit must be a positive integer, got 3"


def test_common_words_speak_for_a_product_only_where_something_shows_it() -> None:
    words = "limit must be a positive integer", "got"
    one = index(entry(*words))
    assert one.find(error(COMMON, file="")) is None
    assert one.find(error(COMMON)) is not None
    for line in (
        f"deepspeed.config.ValueError: {COMMON}",
        f"[ERROR] deepspeed.launcher - ValueError: {COMMON}",
    ):
        assert one.find(msgspec.structs.replace(error(COMMON, file=""), text=line)) is not None
    own = entry(*words, exception="ConfigError")
    assert index(own).find(error(COMMON, kind="ConfigError", file="")) is not None
    click = entry(*words, exception="BadParameter")
    assert index(click).find(error(COMMON, kind="BadParameter", file="")) is None


@pytest.mark.parametrize(
    ("condition", "words", "message", "named"),
    [
        pytest.param(
            "ds-config-wrong-type", "must be an integer between", "size must be an integer between",
            False, id="any value",
        ),
        pytest.param(
            "no-gpu-visible", "no supported gpu was found", "no supported gpu was found",
            True, id="its name is in the message",
        ),
        pytest.param(
            "no-gpu-visible", "no available devices were found", "no available devices were found",
            False, id="its name is not in the message",
        ),
        pytest.param(
            "path-missing", "the directory does not exist", "the directory does not exist",
            True, id="a path is missing for everybody",
        ),
        pytest.param(
            "ds-config-unsupported-combination", "is not compatible with the", "ZeRO is not compatible "
            "with the", True, id="DeepSpeed's own name",
        ),
    ],
)  # fmt: skip
def test_common_words_name_a_condition_that_they_mention(
    condition: str, words: str, message: str, *, named: bool
) -> None:
    row = entry(words)
    one = ErrorIndex(
        Header("deepspeed", "2026-01-01", ("1.0",)), [row], {row.key: Label(condition)}
    )
    assert (one.find(error(message, file="")) is not None) is named
    assert one.find(error(message)) is not None


def test_what_any_program_says_is_no_value_of_deepspeeds_config() -> None:
    for line in ("port must be a non-empty string", "level must be an integer between 1 and 5"):
        assert read(f"ValueError: {line}\n").causes == ()


def test_of_several_products_the_one_with_the_longest_message_answers() -> None:
    """DeepSpeed says of other values that they must be an integer between two others."""
    found = read("ValueError: ray_client_server_port must be an integer between 1024 and 65535.\n")
    assert found.causes == ()
    assert found.explained is not None
    assert found.explained.product == "ray"


def test_who_has_an_answer_speaks_for_a_message_that_others_copied() -> None:
    """ms-swift's trainers contain checks of trl's, without an answer of their own."""
    said = "Number of reward weights (3) must match number of reward functions (2)"
    copied = error_lookup.chunks_of(said)
    assert {"swift", "trl"} <= {
        product
        for product in error_lookup.products(FOLDER)
        if any(
            in_order(row, copied) for row in error_index.load(FOLDER, product).entries if row.chunks
        )
    }
    found = read(f"ValueError: {said}\n")
    assert found.explained is not None
    assert found.explained.product == "trl"


def test_uncommon_words_and_many_words_need_no_place() -> None:
    named = index(entry("micro_batch must be a positive integer", "got"))
    assert named.find(error("micro_batch must be a positive integer, got 3", file="")) is not None
    long = index(entry("the value must be", "and the list must not be"))
    text = "the value must be 3 and the list must not be"
    assert long.find(error(text, file="")) is not None


def test_native_code_of_a_product_speaks_where_a_frame_or_its_words_show_it() -> None:
    native = msgspec.structs.replace(
        entry("the input must be on cuda", exception="RuntimeError"), file="deepspeed/ops/csrc/a.h"
    )
    one, said = index(native), "the input must be on cuda"
    assert one.find_native(error(said, "RuntimeError")) is not None
    assert one.find_native(error(said, "RuntimeError", file="")) is None
    torchs = msgspec.structs.replace(native, product="torch")
    assert index(torchs).find_native(error(said, "RuntimeError", file="")) is not None


def test_common_words_alone_are_no_text_to_explain(tmp_path: Path) -> None:
    text = "limit must be a positive integer"
    done = dsdoctor("explain", text, env=clean_environment(tmp_path))
    assert "huggingface_hub" not in done.out
    named = dsdoctor("explain", f"huggingface_hub: {text}", env=clean_environment(tmp_path))
    assert "BadParameter of huggingface_hub" in named.out


def test_a_common_phrase_does_not_identify_a_message_without_a_frame() -> None:
    known = index(entry("is not evenly divisible by"))
    long = "global batch size (8) is not evenly divisible by micro batch size (3) times data parallel size"
    assert known.find(error("hidden size 7 is not evenly divisible by 2", file="")) is not None
    assert known.find(error(long, file="")) is None
    assert known.find(error(long)) is not None, "the place says whose message it is"
