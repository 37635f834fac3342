"""Rows of `ds-config-unreadable`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DsConfig, RunNeeds
from dsdoctor.probes.config import ds_config
from dsdoctor.testing import FakeHost, judge
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


def judged(data: bytes, framework: str) -> list[tuple[str, str]]:
    run = RunNeeds(cwd="/w", config_path="ds.json", framework=framework)
    fact = ds_config.function(FakeHost(files={"/w/ds.json": data}), run)
    found = judge(ds_config_unreadable.config_can_be_read, ds_config=fact, run_needs=run).bad
    return [(one.status.value, f"{one.message}; {one.hint}") for one in found]


TWICE = b'{"train_batch_size": 8, "fp16": {},\n"train_batch_size": 16}'
GBK = '{"train_batch_size": 8,\n"备注": "中文"}'.encode("gbk")
BOM = b'\xef\xbb\xbf{"train_batch_size": 8}'


@pytest.mark.parametrize(
    ("data", "framework", "status", "words"),
    [
        pytest.param(TWICE, "", "fail", "lines 1 and 2", id="twice"),
        pytest.param(TWICE, "native", "fail", "lines 1 and 2", id="twice-for-hjson"),
        pytest.param(TWICE, "hf", "warn", "uses the last one", id="twice-for-json"),
        pytest.param(TWICE[:-1] + b",}", "hf", "fail", "duplicate keys", id="twice-and-no-json"),
        pytest.param(TWICE.replace(b"\n", b""), "", "fail", "twice on line 1", id="on-one-line"),
        pytest.param(GBK, "", "fail", "line 2 cannot be used", id="gbk"),
        pytest.param(GBK, "hf", "fail", "save the file as UTF-8", id="gbk-for-json"),
        pytest.param(GBK.decode("gbk").encode(), "hf", "", "", id="chinese-in-utf-8"),
        pytest.param(BOM, "native", "", "", id="bom-for-hjson"),
        pytest.param(BOM, "hf", "fail", "without a byte order mark", id="bom-for-json"),
        pytest.param(BOM[3:].decode().encode("utf-16"), "", "fail", "UTF-16", id="utf-16"),
    ],
)
def test_how_a_file_is_encoded_and_what_it_repeats(
    data: bytes, framework: str, status: str, words: str
) -> None:
    found = judged(data, framework)
    assert [one for one, _ in found] == ([status] if status else [])
    assert not words or words in found[0][1]
