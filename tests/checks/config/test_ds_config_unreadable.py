"""Rows of `ds-config-unreadable`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DsConfig
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_unreadable
from tests.checks.config.rows import config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            '{"a": 1, // remark\n "b": [1, 2,],}',
            "",
            id="comments and trailing commas, which DeepSpeed reads",
        ),
        pytest.param('{"a": 1,\n"a": 2}', "lines 1 and 2", id="one key twice at the top level"),
        pytest.param(
            '{"fp16": {"enabled": true,\n"enabled": false}}',
            "`fp16.enabled` is set on lines 1 and 2",
            id="one key twice within a section",
        ),
        pytest.param('{\n"a": {"b": 1\n', "line 2 column 6", id="the file ends too early"),
        pytest.param('{"a": None}', "`None}`", id="a value of Python instead of JSON"),
        pytest.param('{"a" 1}', "line 1 column 6", id="a colon is missing"),
        pytest.param("", "empty", id="an empty file"),
        pytest.param("[1]", "list", id="a list instead of an object"),
    ],
)
def test_unreadable(text: str, words: str) -> None:
    found = judge(ds_config_unreadable.config_can_be_read, ds_config=config(text)).bad
    assert bool(found) == bool(words)
    assert not words or words in found[0].message


def test_unreadable_file_that_is_not_there() -> None:
    gone = DsConfig(path="ds_confg.json", error="the file does not exist")
    (found,) = judge(ds_config_unreadable.config_can_be_read, ds_config=gone).bad
    assert "ds_confg.json" in found.message
    assert "correct the path" in found.hint
