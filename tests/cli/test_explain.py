"""`dsdoctor explain` of what people type: names, messages from a log, single words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import condition_search, packs
from tests.support.command import clean_environment, dsdoctor


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        ("CUDA out of memory", "gpu-oom"),
        ("Address already in use", "port-in-use"),
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


def test_other_words_list_what_mentions_them(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    done = dsdoctor("explain", "nccl", "timeout", env=env)
    assert done.status == 0
    assert done.out.splitlines()[0].split()[:2] == ["DSD853", "nccl-timeout-watchdog"]
    assert "these conditions mention the words" in done.err
    report = dsdoctor("explain", "hostfile", "--format", "json", env=env).report
    assert "hostfile" in report["conditions"][0]["condition"]


def test_words_that_nothing_mentions_are_one_line(tmp_path: Path) -> None:
    done = dsdoctor("explain", "zzyzx", "blubb", env=clean_environment(tmp_path))
    assert (done.status, done.out) == (2, "")
    assert "no condition mentions all of its words" in done.err
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
    assert condition_search.search(packs.load(), " ?! ") == []


def test_every_word_must_be_there() -> None:
    registry = packs.load()
    wide = {unit.condition.name for unit in condition_search.search(registry, "nvlink")}
    narrow = {unit.condition.name for unit in condition_search.search(registry, "nvlink inactive")}
    assert narrow
    assert narrow < wide
