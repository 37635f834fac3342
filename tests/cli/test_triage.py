"""`triage`: an issue whose text contains a log, the output of a tool, both or neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import clean_environment, dsdoctor

PASTE = "ds_report\ntorch version .................... 2.4.0+cu121\ntorch cuda version ............... 12.1\n"


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        pytest.param("my GPU does not work\n", "UNRECOGNIZED", id="prose"),
        pytest.param("epoch 1: loss 0.3\n", "NOTHING FOUND", id="lines that may be a log"),
        pytest.param(PASTE, "NOTHING FOUND", id="the output of a tool, in which nothing is wrong"),
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory.\n", "CAUSE gpu-oom", id="an error"
        ),
    ],
)
def test_an_issue_that_shows_nothing_is_not_clean(tmp_path: Path, text: str, begins: str) -> None:
    (tmp_path / "issue.md").write_text(text)
    done = dsdoctor("triage", "issue.md", env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.out.startswith(begins)
    assert done.status == (1 if begins.startswith("CAUSE") else 3)
