"""`dsdoctor explain` of what people type: names, messages from a log, single words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.cli import explain
from dsdoctor.packs.registry import Unit
from dsdoctor.reference import condition_search
from dsdoctor.report.reflow import reflow
from tests.support.command import clean_environment, dsdoctor


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        ("CUDA out of memory", "gpu-oom"),
        ("Address already in use", "port-in-use"),
        ("No module named 'loralib'", "script-module-missing"),
        ("ninja is required to load C++ extensions", "jit-build-ninja-missing"),
    ],
)
def test_a_message_leads_to_the_page_of_its_condition(
    tmp_path: Path, message: str, condition: str
) -> None:
    env = clean_environment(tmp_path)
    done = dsdoctor("explain", message, env=env)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"# {condition} (DSD")
    assert dsdoctor("explain", *message.split(), env=env).out == done.out


def test_words_of_python_and_torch_are_not_answered_by_a_message_that_shares_them(
    tmp_path: Path,
) -> None:
    done = dsdoctor(
        "explain", "IndexError: index out of range in self", env=clean_environment(tmp_path)
    )
    assert not done.out.startswith("# IndexError of deepspeed")


def test_other_words_list_what_mentions_them(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    done = dsdoctor("explain", "nccl", "timeout", env=env)
    assert done.status == 0
    assert done.out.splitlines()[0].split()[:2] == ["DSD853", "nccl-timeout-watchdog"]
    assert "the closest conditions" in done.err
    report = dsdoctor("explain", "hostfile", "--format", "json", env=env).report
    assert "hostfile" in report["conditions"][0]["condition"]


def test_a_part_of_a_name_lists_and_a_mistyped_one_is_corrected(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    part = dsdoctor("explain", "cuda-toolkit", env=env)
    assert part.status == 0
    listed = [line.split()[1] for line in part.out.splitlines() if line.startswith("DSD")]
    assert {"cuda-toolkit-missing", "cuda-toolkit-mismatch"} <= set(listed)
    wrong = dsdoctor("explain", "cuda-toolkit-mising", env=env)
    assert (wrong.status, wrong.out) == (2, "")
    assert "`cuda-toolkit-missing`" in wrong.err


def test_words_that_nothing_mentions_are_one_line(tmp_path: Path) -> None:
    done = dsdoctor("explain", "zzyzx", "blubb", env=clean_environment(tmp_path))
    assert (done.status, done.out) == (2, "")
    assert "no condition mentions its words" in done.err
    assert len(done.err.splitlines()) == 1


def test_the_name_counts_more_than_the_title_and_the_title_more_than_the_page() -> None:
    registry = packs.load()
    found = condition_search.search(registry, "Driver")
    named = ["driver" in unit.condition.name for unit in found]
    titled = ["driver" in unit.title.lower() for unit in found]
    assert named == sorted(named, reverse=True)
    rest = titled[named.count(True) :]
    assert rest == sorted(rest, reverse=True)
    assert True in rest
    assert len(found) <= condition_search.MOST


def test_no_words_find_nothing() -> None:
    assert condition_search.search(packs.load(), " ?! how do I use it") == []


def test_more_words_find_less() -> None:
    registry = packs.load()
    wide = set(_names(condition_search.search(registry, "nvlink")))
    narrow = set(_names(condition_search.search(registry, "nvlink inactive")))
    assert narrow
    assert narrow < wide


def test_words_that_stand_side_by_side_count_more_than_words_that_stand_apart() -> None:
    found = _names(condition_search.search(packs.load(), "bus error"))
    assert "shm-too-small" in found  # its messages are "Bus error"
    assert "nvidia-smi-hangs" not in found  # it mentions a bus, and an error


def test_a_hint_is_searched_and_a_plural_is_the_same_word() -> None:
    registry = packs.load()
    assert _names(condition_search.search(registry, "docker shm"))[0] == "shm-too-small"
    one, several = (
        _names(condition_search.search(registry, text)) for text in ("bus error", "bus errors")
    )
    assert one == several


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("ds_report says NO for async_io", "libaio-missing"),
        ("my training is slow on 8 GPUs", "gpu-subset-slow"),
        ("infiniband is not used", "rdma-port-down"),
        ("my hostfile has a typo", "hostfile-or-ssh-problem"),
    ],
)
def test_a_question_is_answered_by_its_topic(question: str, condition: str) -> None:
    assert condition in _names(condition_search.search(packs.load(), question))[:3]


@pytest.mark.parametrize("columns", [60, 80])
def test_a_page_is_wrapped_to_the_terminal_and_says_the_same(columns: int, tmp_path: Path) -> None:
    for unit in packs.load(builtin_only=True):
        whole = explain.page(unit)
        narrow = reflow(whole, columns)
        assert narrow.split() == whole.split()
        code = False
        for line in narrow.splitlines():
            code = code is not line.startswith("```")
            words = re.sub(r"`[^`]*`", "command", line).split()  # which stays whole
            long = len(line) > columns and len(words) > 2
            assert not long or code or line.startswith(("#", "|", "    ")), line
    env = clean_environment(tmp_path)
    lines = dsdoctor(
        "explain", "driver-too-old", env=env | {"COLUMNS": str(columns)}
    ).out.splitlines()
    assert lines[:2] == ["# driver-too-old (DSD102)", ""]
    wide = dsdoctor("explain", "driver-too-old", env=env).out.splitlines()
    assert len(lines) > len(wide), "a pipe gets the page as it is"


def _names(found: list[Unit]) -> list[str]:
    return [unit.condition.name for unit in found]


def test_a_list_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    units = list(packs.load(builtin_only=True))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = explain.listing(units, "text")
    assert max(map(len, narrow.splitlines())) <= 80
    monkeypatch.delenv("COLUMNS")
    whole = explain.listing(units, "text")
    assert len(whole.splitlines()) == len(units), "a pipe gets a line for each"
    assert narrow.split() == whole.split()
