"""The page of `check --from-report`: what it was read from, and nothing of what a text left out."""

from __future__ import annotations

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
