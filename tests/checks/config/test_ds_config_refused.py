"""Rows of `ds-config-refused`: DeepSpeed's own word, with the line of the user's file."""

from __future__ import annotations

import pytest

from dsdoctor import judge as judging
from dsdoctor import packs
from dsdoctor.api import ConfigRefusal, ConfigVerdict, Status
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_invalid_key, ds_config_refused
from tests.checks.config.rows import NOW, config

CHECK = ds_config_refused.deepspeed_takes_it
REGISTRY = packs.load(builtin_only=True)
TEXT = '{\n"communication_data_type": "int8",\n"zero_optimization": {\n"foo": 1}}'


def verdict(*keys: str) -> ConfigVerdict:
    return ConfigVerdict(
        version="0.19.8",
        refusals=tuple(
            ConfigRefusal(key=key, message="not taken. See the issue", kind="ValueError")
            for key in keys
        ),
    )


def test_a_config_that_is_taken() -> None:
    assert judge(CHECK, ds_config=config(TEXT), config_verdict=verdict()).statuses == ["ok"]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        pytest.param(
            "communication_data_type",
            "`communication_data_type` (line 2): not taken; See the issue",
            id="a top-level key",
        ),
        pytest.param(
            "zero_optimization.foo",
            "`zero_optimization.foo` (line 4): not taken; See the issue",
            id="a key within a section",
        ),
        pytest.param(
            "",
            "rejects the config as a whole: not taken; See the issue",
            id="no key, so the config as a whole",
        ),
    ],
)
def test_the_key_and_its_line_are_named(key: str, words: str) -> None:
    (finding,) = judge(CHECK, ds_config=config(TEXT), config_verdict=verdict(key)).bad
    assert finding.message.endswith(words)
    assert finding.evidence["line"] == {"communication_data_type": 2, "": None}.get(key, 4)


def test_what_a_check_of_ours_has_said_is_not_said_twice() -> None:
    facts = [
        config(TEXT),
        NOW,
        verdict("communication_data_type", "zero_optimization.foo"),
        RunNeeds(),
    ]
    units = REGISTRY.select(["ds-config-refused", "ds-config-invalid-key"], [])
    report = judging.judge(snapshots.of(facts), units, REGISTRY)
    loud = [(f.condition, f.evidence["key"]) for f in report.findings if f.status is Status.FAIL]
    assert sorted(loud) == [
        ("ds-config-invalid-key", "zero_optimization.foo"),
        ("ds-config-refused", "communication_data_type"),
    ]


def test_the_authority_wins_over_our_table() -> None:
    check = ds_config_invalid_key.keys_are_known
    assert (
        judge(check, ds_config=config(TEXT), deep_speed_install=NOW, config_verdict=verdict()).bad
        == []
    )
    assert len(judge(check, ds_config=config(TEXT), deep_speed_install=NOW).bad) == 1
    assert (
        len(
            judge(
                check,
                ds_config=config(TEXT),
                deep_speed_install=NOW,
                config_verdict=verdict("zero_optimization.foo"),
            ).bad
        )
        == 1
    )
