"""The page of `check --from-report`: what it was read from, and nothing of what a text left out."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from dsdoctor.report.html import check
from tests.paste import texts


def test_the_page_of_a_paste_claims_nothing_of_what_it_leaves_out() -> None:
    snapshot = environment_of(texts.PIP_LIST)
    assert snapshot is not None
    registry = packs.load()
    page = check.page(judge(snapshot, list(registry), registry), snapshot)
    assert "a paste of pip list" in page
    assert "conditions</p>" in page
    for words in ("unknown host", "no NVIDIA GPU<", "no Python interpreter", "What was not read"):
        assert words not in page


def test_gpus_of_which_nothing_is_known_are_no_picture() -> None:
    snapshot = environment_of(texts.COLLECT_ENV)
    assert snapshot is not None
    registry = packs.load()
    page = check.page(judge(snapshot, list(registry), registry), snapshot)
    assert "2 × NVIDIA A100" in page
    assert "<h2>The machine</h2>" not in page


@pytest.mark.parametrize("name", sorted(texts.ALL))
def test_every_text_has_a_page_also_where_it_was_cut_off(name: str) -> None:
    registry = packs.load()
    lines = texts.ALL[name].splitlines(keepends=True)
    for text in ("".join(lines), "".join(lines[: len(lines) // 2]), "".join(lines[3:])):
        snapshot = environment_of(text)
        if snapshot is not None:
            page = check.page(judge(snapshot, list(registry), registry), snapshot)
            assert "GPU None" not in page
            assert "at None" not in page


def test_a_gpu_without_a_number_and_an_address() -> None:
    part = "    Power Readings\n        Power Limit            : 100.00 W\n"
    snapshot = environment_of(f"{part}        Default Power Limit    : 250.00 W\n")
    assert snapshot is not None
    registry = packs.load()
    report = judge(snapshot, list(registry), registry)
    page = check.page(report, snapshot)
    assert "a GPU is limited to 100 W" in page
    assert "None" not in "".join(one.message + (one.hint or "") for one in report.findings)
