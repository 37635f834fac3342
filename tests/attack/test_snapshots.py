"""Snapshots of others that steer a terminal, or take a check's time."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.cli import loading
from dsdoctor.model.facts.gpu import MOST_GPUS, Gpus, GpuTopology
from dsdoctor.model.snapshot import from_json
from tests.support.command import clean_environment, dsdoctor

pytestmark = pytest.mark.any_user

#: OSC 52 writes the clipboard; U+009B is CSI in one character; U+202E turns the line round.
STEERS = "\x1b]52;c;QUJD\x07\u202e\x9b31m\x7f"
FORMATS = ("text", "json", "junit", "github", "html")


def changed(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, dict):
        return {key: changed(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [changed(inner, change) for inner in value]
    return change(value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A snapshot of this machine."""
    folder = tmp_path_factory.mktemp("sound")
    done = dsdoctor("snapshot", "--quick", env=clean_environment(folder), cwd=folder)
    assert done.status == 0, done.err
    return done.report


@pytest.mark.parametrize("form", FORMATS)
def test_no_text_of_a_snapshot_steers_the_terminal(
    sound: dict[str, Any], tmp_path: Path, form: str
) -> None:
    texts = {**sound, "facts": changed(sound["facts"], lambda _: STEERS + "<b>")}
    lacking = {name: {"why": "broken", "detail": STEERS + "<b>"} for name in sound["facts"]}
    for name, document in (
        ("texts", texts),
        ("details", {**sound, "facts": {}, "missing": lacking}),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document))
        env = clean_environment(tmp_path)
        for argv in (["check", "--from"], ["recommend", "--model", "7B", "--from"]):
            if argv[0] == "recommend" and form in ("junit", "github"):
                continue
            done = dsdoctor(*argv, str(path), "--format", form, env=env, cwd=tmp_path)
            assert "Traceback" not in done.err
            assert not set(STEERS[:1] + "\x07\u202e\x9b\x7f").intersection(done.out + done.err)
            if form == "json" and done.out:
                json.loads(done.out)


def test_json_says_the_same_without_what_steers() -> None:
    text = json.dumps({STEERS: [STEERS, "é"]}, ensure_ascii=False)
    assert json.loads(loading.harmless(text)) == json.loads(text)
    assert "é" in loading.harmless(text)
    assert not set("\u202e\x9b\x7f").intersection(loading.harmless(text))


def seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("count", [MOST_GPUS, 5000])
def test_a_node_of_thousands_of_gpus_is_judged_in_bounded_time(
    sound: dict[str, Any], tmp_path: Path, count: int
) -> None:
    """How GPUs reach each other is judged in cubic time."""
    gpus = [{"index": index, "name": "A", "uuid": f"GPU-{index}"} for index in range(count)]
    few = range(min(count, MOST_GPUS))
    pairs = [{"a": a, "b": b, "ancestor": "SYSTEM"} for a in few for b in few if a < b]
    facts = {**sound["facts"], "gpus": {"count": count, "gpus": gpus}}
    missing = {key: value for key, value in sound["missing"].items() if not key.startswith("gpu")}
    document = {**sound, "facts": {**facts, "gpu_topology": {"pairs": pairs}}, "missing": missing}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    found = from_json(path.read_bytes(), "s.json")
    assert isinstance(found.get(Gpus), Gpus) is (count <= MOST_GPUS)
    assert isinstance(found.get(GpuTopology), GpuTopology)
    before = seconds()
    done = dsdoctor("check", "--from", str(path), env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status in (0, 1, 3), done.err  # as the torch that is installed here needs
    assert seconds() - before < 20


@pytest.mark.parametrize("form", ["text", "html", "json"])
def test_a_comparison_of_20000_variables_is_bounded(tmp_path: Path, form: str) -> None:
    """40 s before, and a page of 3 MB: each variable was compared with each that NCCL knows."""
    for name in ("a", "b"):
        variables = {f"NCCL_X{number}": f"{name}{number}" for number in range(20_000)}
        variables["NCCL_LONG"] = name * 1_000_000
        found = {
            "environment": {"variables": variables},
            **{f"f{n}": {"x": name} for n in range(500)},
        }
        text = {"schema": "dsdoctor/snapshot", "version": 1, "facts": found}
        (tmp_path / f"{name}.json").write_text(json.dumps(text))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = dsdoctor(
        "diff", "a.json", "b.json", "--format", form, env=clean_environment(tmp_path), cwd=tmp_path
    )
    assert done.status == 1, done.err
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 20
    if form == "html":
        assert len(done.out) < 1 << 20
        assert "20001 values, the first 500 shown" in done.out
        assert "19802 of 20501 values are left out of this page" in done.out
        assert "(1000000 characters)" in done.out
