"""The pages of the error index say what `explain` and `diagnose` say, and no product's sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dsdoctor_checks
from dsdoctor import packs
from dsdoctor.cli.explain import message_page
from dsdoctor.logs import error_index, error_lookup, signatures_of
from dsdoctor.reference import error_pages

FOLDER = Path(dsdoctor_checks.__file__).parent / "_error_index"
PAGES = error_pages.pages(FOLDER)
KNOWN = signatures_of(packs.load(builtin_only=True))


@pytest.mark.parametrize(
    ("message", "file", "row"),
    [
        pytest.param(
            "AssertionError: DeepSpeed requires --deepspeed_config to specify configuration file",
            "deepspeed.md",
            "| `initialize` | `AssertionError` |",
            id="DeepSpeed without a config",
        ),
        pytest.param(
            (
                "ValueError: You have to specify the number of devices you would like to use, add "
                "`num_processes=...` to your call."
            ),
            "accelerate.md",
            "| `notebook_launcher` | `ValueError` |",
            id="a notebook without a number of processes",
        ),
    ],
)
def test_a_page_says_what_explain_says(message: str, file: str, row: str) -> None:
    said = KNOWN.answer_text(message)
    assert said is not None
    assert said.text
    assert said.text in message_page(said)
    assert any(
        line.startswith(row) and f"| {said.text} |" in line for line in PAGES[file].splitlines()
    )


def test_every_condition_that_a_page_links_to_has_a_page() -> None:
    linked = set(re.findall(r"\.\./conditions/([\w-]+)\.md", "".join(PAGES.values())))
    assert len(linked) > 20
    assert linked <= KNOWN.conditions.keys()


@pytest.mark.parametrize("product", sorted(error_lookup.products(FOLDER)))
def test_a_page_has_every_message(product: str) -> None:
    counted = re.findall(
        r"^\| `.+?` \| `.+?` \| .+? \| (\d+) \|", PAGES[f"{product}.md"], re.MULTILINE
    )
    index = error_index.load(FOLDER, product)
    assert sum(map(int, counted)) == sum(1 for entry in index.entries if entry.chunks) > 0
