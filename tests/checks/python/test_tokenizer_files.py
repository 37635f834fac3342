"""`dependency-version-conflict` for a tokenizer that only SentencePiece can read."""

from __future__ import annotations

import pytest

from dsdoctor.api import LaunchFiles, Missing, RunNeeds, Why
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.python import dependency_version_conflict
from tests.checks.python.support import deepspeed_live, packages, patient, torch_live

ABSENT = Missing(why=Why.ABSENT, detail="")
PIECES = b"\n\x0e\n\x05<unk>\x15\x00"


def files(names: dict[str, bytes], words: str = "") -> LaunchFiles:
    there = {f"/job/m/{name}": content for name, content in names.items()}
    host = FakeHost(files={"/job/m/config.json": b"{}", **there})
    command = parse_command(["deepspeed", "t.py", "--model_name_or_path", "m", *words.split()])
    found = launch_files.function(host, RunNeeds(cwd="/job"), command, ABSENT)
    assert isinstance(found, LaunchFiles)
    return found


@pytest.mark.parametrize(
    ("names", "words", "tokenizer"),
    [
        pytest.param({"tokenizer.model": PIECES}, "", "tokenizer.model", id="Llama"),
        pytest.param({"spiece.model": PIECES}, "", "spiece.model", id="T5"),
        pytest.param({"tokenizer.model": PIECES, "tokenizer.json": b"{}"}, "", "", id="both forms"),
        pytest.param({"tokenizer.model": b"IQ== 0\nIg== 1\n"}, "", "", id="tiktoken"),
        pytest.param({"tokenizer.model": PIECES, "tekken.json": b"{}"}, "", "", id="Mistral"),
        pytest.param(
            {"tokenizer.model": PIECES, "tokenizer_config.json": b'{"auto_map": {}}'},
            "",
            "",
            id="code of the model",
        ),
        pytest.param(
            {"tokenizer.model": PIECES, "tokenizer_config.json": b"{}"},
            "",
            "tokenizer.model",
            id="a config without code",
        ),
        pytest.param(
            {"tokenizer.model": PIECES}, "--tokenizer_name other", "", id="another tokenizer"
        ),
        pytest.param({"vocab.json": b"{}"}, "", "", id="no such file"),
    ],
)
def test_which_file_a_tokenizer_is_made_from(
    names: dict[str, bytes], words: str, tokenizer: str
) -> None:
    assert files(names, words).model_tokenizer == tokenizer


@pytest.mark.parametrize(
    ("installed", "names", "expected"),
    [
        pytest.param({"transformers": "5.24.0"}, {"tokenizer.model": PIECES}, "warn", id="missing"),
        pytest.param(
            {"transformers": "5.24.0", "sentencepiece": "0.2.1"},
            {"tokenizer.model": PIECES},
            "ok",
            id="installed",
        ),
        pytest.param({}, {"tokenizer.model": PIECES}, "ok", id="without transformers"),
        pytest.param({"transformers": "5.24.0"}, {"tokenizer.json": b"{}"}, "ok", id="not needed"),
    ],
)
def test_rows(installed: dict[str, str], names: dict[str, bytes], expected: str) -> None:
    judged = judge(
        dependency_version_conflict.requirements_are_met,
        packages=packages(**installed),
        patient=patient(),
        torch_live=torch_live(),
        deep_speed_live=deepspeed_live(""),
        launch_files=files(names),
    )
    assert judged.status == expected
    if expected == "warn":
        assert "`tokenizer.model`" in judged.findings[0].message
        assert "sentencepiece" in judged.findings[0].hint
