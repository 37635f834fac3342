"""Judging what many nodes share only once says of each what judging it alone would say."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsdoctor.cli import loading
from dsdoctor.fleet import bundle, frames, reads, replay
from dsdoctor.fleet.nodes import Judge
from dsdoctor.judge import Policy, judge
from dsdoctor.model.facts.gpu import Gpu, GpuHealth, GpuLink, Gpus
from dsdoctor.model.finding import Status
from dsdoctor.model.snapshot import from_json
from tests.nvml import fakenvml, scenarios

REGISTRY = loading.load_registry()
UNITS = REGISTRY.select([], [])
#: One for all examples, so that what is remembered of one must hold for the others.
JUDGE = Judge(REGISTRY, UNITS, Policy())


@functools.cache
def recorded() -> bytes:
    """A snapshot of a machine with 8 GPUs, as a collector on it makes it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-", "--python", sys.executable],
            input=bundle.collector().encode(),
            env={**os.environ, **fakenvml.environment(scenarios.h200_x8(), Path(folder))},
            capture_output=True,
            check=True,
            timeout=500,
        )
    recording = frames.document(done.stdout.splitlines())
    assert recording is not None
    return replay.snapshot_of(recording, time.time()).to_json()


def machine() -> Any:
    """A copy of it that may be changed."""
    return msgspec.json.decode(recorded())


def alone(data: bytes) -> list[tuple[str, str, str, str, str]]:
    """What the engine finds on one node."""
    report = judge(from_json(data, "node"), UNITS, REGISTRY, Policy())
    return sorted(
        (f.status.value, f.id, f.condition, f.message, f.hint)
        for f in report.findings
        if f.status not in (Status.OK, Status.SKIP)
    )


def folded(data: bytes) -> list[tuple[str, str, str, str, str]]:
    return sorted(
        (f.status, f.id, f.condition, f.message, f.hint)
        for f in JUDGE.report("node", data).findings
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to all values that are no container."""
    if isinstance(value, dict):
        return [p for name, item in value.items() for p in places(item, (*path, name))]
    if isinstance(value, list):
        return [p for index, item in enumerate(value) for p in places(item, (*path, index))]
    return [path]


def changed(document: dict[str, Any], path: tuple[Any, ...], how: int) -> None:
    """Changes one value; sometimes to one that no machine has."""
    holder: Any = document["facts"]
    for step in path[:-1]:
        holder = holder[step]
    old = holder[path[-1]]
    choices: list[Any] = [None]
    if isinstance(old, bool):
        choices = [not old, None]
    elif isinstance(old, int):
        choices = [old + 1, 0, 1, old * 3 + 90, None]
    elif isinstance(old, str):
        choices = [old + "9", "", None]
    holder[path[-1]] = choices[how % len(choices)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.tuples(st.integers(0), st.integers(0, 9)), max_size=4), max_size=6))
def test_folding_says_of_each_node_what_judging_it_alone_says(
    nodes: list[list[tuple[int, int]]],
) -> None:
    for changes in nodes:
        made = machine()
        for where, how in changes:
            # GPUs hold nearly all values: half of the changes go elsewhere
            facts = made["facts"]
            kind = "gpus" if how % 2 else list(facts)[where % len(facts)]
            found = places(facts[kind], (kind,))
            if found:
                changed(made, found[where % len(found)], how)
        data = msgspec.json.encode(made)
        assert folded(data) == alone(data)


@pytest.mark.parametrize("kind", ["gpus", "os_info", "resources", "nvidia_kernel", "torch_build"])
def test_a_fact_that_is_missing(kind: str) -> None:
    for why in ("timeout", "absent", "denied"):
        made = machine()
        del made["facts"][kind]
        made["missing"][kind] = {"why": why, "detail": f"{kind} {why}"}
        data = msgspec.json.encode(made)
        assert folded(data) == alone(data)


def test_every_gpu_of_every_node_is_looked_at() -> None:
    """A fault on another GPU of each node, among many healthy ones."""
    for number in range(24):
        made = machine()
        gpu = made["facts"]["gpus"]["gpus"][number % 8]
        gpu["uuid"] = f"GPU-{number}"
        if number % 3 == 0:
            gpu["health"]["remapped_rows_failure"] = True
        messages = [
            f.message
            for f in JUDGE.report("node", msgspec.json.encode(made)).findings
            if f.condition == "row-remap-failed"
        ]
        if number % 3 == 0:
            assert len(messages) == 1
            assert f"GPU {number % 8}" in messages[0]
        else:
            assert messages == []


def gpus(*temperatures: int, links: int = 2) -> Gpus:
    return Gpus(
        count=len(temperatures),
        gpus=tuple(
            Gpu(
                index=index,
                health=GpuHealth(temperature_c=temperature),
                links=tuple(GpuLink(link=n, state=1) for n in range(links)),
            )
            for index, temperature in enumerate(temperatures)
        ),
    )


def test_what_is_read_is_noted_and_nothing_else() -> None:
    noted: set[reads.Path] = set()
    traced = reads.trace(gpus(40, 50), noted)
    assert isinstance(traced, Gpus)
    assert [gpu.health.temperature_c for gpu in traced.gpus] == [40, 50]
    path = ("gpus", "*", "health", "temperature_c")
    assert path in noted
    assert not any("uuid" in place for place in noted)
    assert reads.column(gpus(40, 50), path) == reads.column(gpus(40, 50, links=0), path)
    assert reads.column(gpus(40, 50), path) != reads.column(gpus(50, 40), path)
    assert reads.column(gpus(1), path) != reads.column(gpus(True), path)


def test_what_cannot_be_followed_counts_as_read_whole() -> None:
    for look in (repr, lambda gpu: gpu == gpus(40).gpus[0], lambda gpu: gpu.active_links):
        noted: set[reads.Path] = set()
        (gpu,) = reads.trace(gpus(40), noted).gpus
        look(gpu)
        before = {place: reads.column(gpus(40), place) for place in noted}
        after = {place: reads.column(gpus(40, links=1), place) for place in noted}
        assert before != after, look


def test_a_stand_in_is_itself() -> None:
    traced = reads.trace(gpus(40, 50), set())
    assert traced.gpus[0] is traced.gpus[0]
    assert traced.gpus.index(traced.gpus[1]) == 1
    assert traced.gpus[0] != traced.gpus[1]
