"""The config is read as DeepSpeed reads it, and every key knows its line."""

from __future__ import annotations

import pytest

from dsdoctor.host import HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.config import ds_config, parse_config
from dsdoctor.testing import FakeHost


def test_probe_reads_from_the_working_folder() -> None:
    host = FakeHost(files={"/job/ds.json": '{"zero_optimization": {"stage": 2}}'})
    read = ds_config.function
    assert read(host, RunNeeds(config_path="ds.json", cwd="/job")).section("zero_optimization")
    gone = read(host, RunNeeds(config_path="no.json", cwd="/job"))
    assert gone.error == "the file does not exist"
    with pytest.raises(HostError) as caught:
        read(host, RunNeeds())
    assert caught.value.missing.why is Why.NOT_ASKED


def test_secrets_do_not_enter() -> None:
    found = parse_config('{"comet": {"api_key": "abc"}, "url": "http://me:pw@host"}')
    assert "abc" not in str(found)
    assert "pw" not in str(found)


def test_lines_survive_remarks_and_strings_of_many_lines() -> None:
    text = "# one\n/* two\n three */\n{\n  a: '''x\n  }'''\n  \"b\\\"c\": [1, // }\n {d: 2}]\n}"
    assert parse_config(text).lines == {"a": 5, 'b"c': 7, 'b"c.1.d': 8}


@pytest.mark.parametrize(
    "text",
    [
        "/* x",
        '{"a": "x',
        "{",
        "{a",
        '{"a": [',
        "'''",
        pytest.param("{" * 5000, id="5,000 nested objects"),
        "5",
        ":",
        "\ufeff{}",
    ],
)
def test_broken_text_never_raises(text: str) -> None:
    parse_config(text)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_another_encoding_is_named(encoding: str) -> None:
    text = '{"zero_optimization": {"stage": 2}}'.encode(encoding).decode("utf-8", "replace")
    found = parse_config(text)
    assert found.parsed is None
    assert found.error == "the file is in UTF-16 or UTF-32, expected UTF-8"
