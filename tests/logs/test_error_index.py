"""The error index: its data, how a message is matched, and what a diagnosis makes of it."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, error_index, error_keys, error_lookup
from dsdoctor.logs.error_index import Label
from dsdoctor.logs.error_lookup import INTERNAL, REFUSAL
from dsdoctor.model.diagnosis import Outcome
from tests.support.command import clean_environment, dsdoctor
from tests.support.error_index import KNOWN, REGISTRY, chunk, entry, error, index, log, read

FOLDER = Path(packs.__file__).parent.parent.parent / "checks" / "dsdoctor_checks" / "_error_index"
PRODUCTS = sorted(error_lookup.products(FOLDER))
ROW = re.compile(
    r"#(?:product \w+|made \d{4}-\d\d-\d\d|releases [\d. ]+)|>[\w/.]+\.(?:py|cpp|cuh?|h|hpp)"
    r"|[\w.]+\t[\w<>]+\t\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\t\^?(?:[1-6]:[0-9a-f]{10} ?)*"
)
LONGEST_AGE = dt.timedelta(days=400)


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_data_contain_hashes_and_no_sentence(product: str) -> None:
    rows = (FOLDER / f"{product}.index").read_text().splitlines()
    assert [row for row in rows if not ROW.fullmatch(row)] == []


@pytest.mark.parametrize("product", PRODUCTS)
def test_rows_that_are_read_alone_say_what_the_whole_index_says(product: str) -> None:
    whole = error_index.load(FOLDER, product)
    stored = error_lookup.stored_text(FOLDER, product)
    starts = [row.start() for row in re.finditer(r"^(?![#>]).", stored, re.MULTILINE)]
    part = error_index.load_rows(FOLDER, product, tuple(starts))
    assert (part.header, part.entries) == (whole.header, whole.entries)
    assert len(part.entries) == len(starts) > 0
    assert [part.answer(one) for one in part.entries] == [
        whole.answer(one) for one in whole.entries
    ]


def test_a_comment_among_the_answers_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "deepspeed.index").write_text(
        "#product deepspeed\n#made 2026-01-01\n#releases 1.0\n>engine.py\n"
        "ValueError\tf\t0\t5:0123456789\n"
    )
    row = error_lookup.stored_text(tmp_path, "deepspeed").index("ValueError")
    key = error_index.parse(error_lookup.stored_text(tmp_path, "deepspeed"))[1][0].key
    (tmp_path / "deepspeed.labels").write_text(
        f"# a page of answers\nrefusal Do it.\n\t0000000000 f\n# why\n\t{key} f\n"
    )
    part = error_index.load_rows(tmp_path, "deepspeed", (row,))
    assert part.labels == {key: Label(REFUSAL, "Do it.")}


def test_the_products_of_a_message_are_found_by_marks_that_agree_with_the_index() -> None:
    whole = {name: error_index.load(FOLDER, name).entries for name in PRODUCTS}
    marks = {name: [one.mark for one in found if one.mark] for name, found in whole.items()}
    assert (FOLDER / error_keys.FILE).read_text() == error_keys.render(marks), "docs/generate.py"
    unmarked = [one for found in whole.values() for one in found if not one.mark]
    assert max(one.words for one in unmarked) < 4
    assert not any(one.chunks and one.is_native for one in unmarked)


def test_only_products_that_a_text_may_quote_are_read(tmp_path: Path) -> None:
    names = ["a", "b"]
    assert error_keys.quoted(tmp_path, names, {"6:0123456789"}) == names, "there are no marks"
    other = tmp_path / "other"
    other.mkdir()
    (other / error_keys.FILE).write_text(error_keys.render({"a": ["6:0123456789"], "b": []}))
    assert error_keys.quoted(other, names, {"6:0123456789"}) == ["a"]
    assert error_keys.quoted(other, names, {"1:0123456789"}) == []


def test_a_mark_is_the_first_of_the_longest_chunks() -> None:
    words = "these are six words of it"
    one = entry("a short part", words, words.replace("six", "more"))
    count, name = chunk(words)
    assert one.mark == f"{count}:{name}"
    assert entry("only three words").mark == ""


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_data_are_fresh(product: str) -> None:
    header = error_index.load(FOLDER, product).header
    age = dt.datetime.now(tz=dt.timezone.utc).date() - dt.date.fromisoformat(header.made)
    assert age < LONGEST_AGE
    assert header.product == product


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_answer_is_for_a_message_and_every_condition_exists(product: str) -> None:
    one = error_index.load(FOLDER, product)
    assert set(one.labels) <= {entry.key for entry in one.entries}
    kinds = {label.kind for label in one.labels.values()} - {REFUSAL, INTERNAL}
    assert kinds <= {unit.condition.name for unit in REGISTRY}
    for label in one.labels.values():
        assert label.text or label.kind != REFUSAL, label
        assert not label.text or label.kind != INTERNAL, label
        assert not label.text.endswith("."), label
        # a hint is the condition's own sentence on what to do, which a refusal is already
        assert not label.hint or (label.text and label.kind not in {REFUSAL, INTERNAL}), label
        assert not label.hint or label.hint[0] == "`" or label.hint[0].islower(), label
        assert not label.hint.endswith("."), label


@pytest.mark.parametrize("product", PRODUCTS)
def test_exceptions_have_the_names_that_python_prints(product: str) -> None:
    stored = error_lookup.stored_text(FOLDER, product)
    names = {row.split("\t", 1)[0] for row in stored.splitlines() if "\t" in row}
    assert {error_lookup.canonical(name) for name in names} == names


@pytest.mark.parametrize("name", ["OSError", "EnvironmentError", "IOError"])
def test_what_is_raised_as_an_alias_of_oserror_has_an_answer(name: str) -> None:
    text = log(
        "launcher/launcher_helper.py",
        "env_mapping",
        f"{name}: rank number is not in current env!",
    )
    found = diagnose([Source("log", data=text.encode())], KNOWN)
    assert found.explained is not None
    assert "`mpirun` of MPICH" in found.explained.text


def test_deepspeed_is_answered() -> None:
    one = error_index.load(FOLDER, "deepspeed")
    words = [e for e in one.entries if e.chunks and not e.exception.startswith("log.")]
    newest = [e for e in words if one.header.releases[-1] in e.releases]
    assert len(newest) > 1500
    assert sum(e.key in one.labels for e in newest) / len(newest) > 0.98


def test_a_message_is_found_whatever_its_values() -> None:
    one = index(entry("the stages must divide", "of the world here"))
    found = one.find(error("the stages must divide 8 of the world here, not 3"))
    assert found is not None
    assert one.find(error("of the world here the stages must divide 8")) is None
    assert one.find(error("the stages must divide", kind="RuntimeError")) is None


def test_an_anchored_message_begins_with_its_words() -> None:
    one = index(entry("no ranks are left over", anchored=True))
    assert one.find(error("no ranks are left over")) is not None
    assert one.find(error("here no ranks are left over")) is None


def test_few_words_need_the_place() -> None:
    one = index(entry("not supported"))
    assert one.find(error("3 not supported")) is not None
    assert one.find(error("3 not supported", function="g")) is None
    assert one.find(error("3 not supported", file="")) is None


def test_few_words_of_native_code_need_no_place_if_nothing_else_is_said() -> None:
    """No traceback has a frame of C++."""
    native = msgspec.structs.replace(entry("size mismatch"), file="deepspeed/ops/csrc/a.cuh")
    one = index(native)
    assert one.find(error("Size mismatch")) is not None
    assert one.find(error("Size mismatch of 3 and 4 columns")) is None
    assert one.find(error("Size mismatch", file="")) is None


def test_what_python_says_itself_needs_the_place() -> None:
    one = index(entry("object has no attribute at all", exception="AttributeError"))
    text = "'x' object has no attribute at all"
    assert one.find(error(text, kind="AttributeError")) is not None
    assert one.find(error(text, kind="AttributeError", file="")) is None


@pytest.mark.parametrize("many", ["not enough", "too many"])
def test_what_python_says_of_any_unpacking_is_no_products_message(many: str) -> None:
    """Triton raises the same words for the code of a kernel."""
    line = f"ValueError: {many} values to unpack (expected 2, got 1)"
    kernel = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n'
        '    kernel[grid](x)\n  File "/x/site-packages/triton/compiler/code_generator.py", line 7, '
        f"in _sanitize_target_value\n    raise\n{line}\n"
    )
    assert read(f"{line}\n").explained is None
    found = read(kernel).explained
    assert found is not None
    assert found.product == "triton"


def test_what_python_says_of_any_call_is_no_products_message() -> None:
    text = (
        "TypeError: Accelerator.__init__() got an unexpected keyword argument 'dispatch_batches'\n"
    )
    found = diagnose([Source("log", data=text.encode())], KNOWN)
    assert [cause.condition for cause in found.causes] == ["transformers-deepspeed-incompatible"]


def test_the_longer_message_wins_and_a_tie_has_no_answer() -> None:
    short, long = entry("the batch is too"), entry("the batch is too small now")
    found = index(short, long).find(error("the batch is too small now"))
    assert found is not None
    assert found.entry is long
    other = msgspec.structs.replace(short, chunks=(chunk("is too small now"),))
    tie = index(short, other).find(error("the batch is too small now"))
    assert tie is not None
    assert tie.label is None


def test_a_validator_is_seen_through_pydantic() -> None:
    one = index(entry("offload must be a small number"))
    text = "1 validation error for C stage Value error, offload must be a small number [type=x]"
    assert one.find(error(text, kind="ValidationError", file="pydantic/main.py")) is not None


def test_a_refusal_says_what_it_asks_for() -> None:
    line = "RuntimeError: train_batch() requires gradients enabled. Use eval_batch() instead."
    found = read(log("runtime/pipe/engine.py", "train_batch", line))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.causes == ()
    assert found.explained is not None
    assert (found.explained.kind, found.explained.product) == (REFUSAL, "deepspeed")
    assert "eval_batch" in found.explained.text
    assert found.raised_by is not None
    assert "0.19.8" in found.explained.releases


def test_an_internal_check_is_reported_to_its_authors() -> None:
    line = "AssertionError: active_backward_submodules is empty during backward pass"
    found = read(
        log("runtime/zero/partitioned_param_coordinator.py", "release_sub_module", line)
    ).explained
    assert found is not None
    assert found.kind == INTERNAL
    assert found.url == "https://github.com/deepspeedai/DeepSpeed/issues"


def test_a_condition_becomes_a_cause() -> None:
    line = "AssertionError: Fp16_master_weights_and_grads is only supported with ZeRO Stage 1, 2, or 3."
    found = read(log("runtime/config.py", "_do_error_check", line))
    assert [cause.condition for cause in found.causes] == ["ds-config-unsupported-combination"]


def test_the_index_counts_more_than_a_rule_of_the_place() -> None:
    line = (
        "RuntimeError: AutoEP with ZeRO Stage 3 checkpointing does not support NVMe optimizer "
        "swapping yet because expert state is restored from ZeRO optimizer shards."
    )
    found = read(log("runtime/engine.py", "_save_moe_checkpoint", line))
    assert found.causes == ()
    assert found.explained is not None


def test_what_the_script_raises_in_the_same_words_is_the_scripts() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in f\n'
        "RuntimeError: train_batch() requires gradients enabled. Use eval_batch() instead.\n"
    )
    found = read(text)
    assert found.outcome is Outcome.USER_CODE
    assert found.explained is None


def test_a_first_line_of_any_length_is_found_with_its_place() -> None:
    """The lines below it may be left out of the log, or be too many to be read."""
    first = "this strategy cannot start its processes because the script does not guard its main"
    parts = [first.split()[at : at + 6] for at in range(0, 14, 6)]
    row = entry(*(" ".join(part) for part in parts), "code and more", anchored=True)
    one = index(row)
    assert one.find_begun(error(first)) is not None
    assert one.find_begun(error(first, function="g")) is None
    assert one.find_begun(error(first.replace("because", "although"))) is None
    other = msgspec.structs.replace(row, chunks=(*row.chunks, chunk("or not at all")))
    both = index(row, other).find_begun(error(first))
    assert both is not None
    assert both.label is None, "the lines below would choose"


@pytest.mark.parametrize(
    "file",
    [
        pytest.param("lightning/pytorch/trainer/call.py", id="the common package"),
        pytest.param("pytorch_lightning/trainer/call.py", id="the older package"),
    ],
)
def test_a_package_with_two_names_is_one_product(file: str) -> None:
    text = log(
        "x.py",
        "_call_lightning_module_hook",
        "TypeError: No `LightningModule` is available to call hooks on.",
    )
    found = read(text.replace("deepspeed/x.py", file))
    assert found.explained is not None
    assert (found.explained.kind, found.explained.product) == (INTERNAL, "lightning")
    assert found.explained.url == "https://github.com/Lightning-AI/pytorch-lightning/issues"
    assert found.raised_by is not None
    assert found.raised_by.file == file


def test_an_engine_that_refuses_its_own_sizes_is_no_case_of_deepspeeds_config() -> None:
    line = (
        "ValueError: Total number of attention heads (40) must be divisible by tensor parallel "
        "size (3)."
    )
    text = log("x.py", "verify_with_parallel_config", line)
    found = read(text.replace("deepspeed/x.py", "vllm/config/model.py"))
    assert found.causes == ()
    assert found.explained is not None
    assert (found.explained.kind, found.explained.product) == (REFUSAL, "vllm")


def test_explain_finds_a_message(tmp_path: Path) -> None:
    text = "RuntimeError: train_batch() requires gradients enabled. Use eval_batch()"
    done = dsdoctor("explain", text, env=clean_environment(tmp_path))
    assert done.status == 0
    assert "eval_batch" in done.out
    assert "deepspeed/runtime/pipe/engine.py" in done.out


def test_explain_of_an_unknown_message_is_misuse(tmp_path: Path) -> None:
    done = dsdoctor("explain", "nobody has ever raised this", env=clean_environment(tmp_path))
    assert done.status == 2
    assert "no known message contains this text" in done.err


def test_a_message_that_only_shares_words_is_not_looked_up() -> None:
    one = error("the model is on the same GPU as the number of heads", file="", function="")
    assert error_lookup.find(FOLDER, one) is None
