"""Rows of `numactl-unusable`, and what asks `numactl`."""

from __future__ import annotations

import pytest

from dsdoctor.api import (
    DeepSpeedInstall,
    DeepSpeedLive,
    ImportOutcome,
    Missing,
    Numactl,
    Why,
)
from dsdoctor.probes.numactl import numactl
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost, judge, read
from dsdoctor_checks.launch import numactl_unusable
from tests.checks.launch.rows import command, env

BINDS = "deepspeed --bind_cores_to_rank t.py"
PATH = "/usr/bin/numactl"
NODES = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\nnode 0 free: 90 MB\n"
NONE = Result(argv=("numactl",), returncode=1, stdout=b"No NUMA available on this system\n")


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(Numactl(path=PATH), "ok", id="it lists the nodes"),
        pytest.param(Numactl(), "fail", id="it is not installed"),
        pytest.param(
            Numactl(path=PATH, error="No NUMA available on this system"), "fail", id="in WSL 2"
        ),
        pytest.param(Numactl(path=PATH, binds=False), "ok", id="nodes are counted"),
        pytest.param(Numactl(binds=False), "warn", id="nodes cannot be counted"),
    ],
)
def test_rows(fact: Numactl, expected: str) -> None:
    assert judge(numactl_unusable.ranks_can_be_bound, numactl=fact).status == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(NODES, Numactl(path=PATH), id="two nodes"),
        pytest.param(NONE, Numactl(path=PATH, error="No NUMA available on this system"), id="none"),
    ],
)
def test_numactl_is_asked(answer: str | Result, expected: Numactl) -> None:
    host = FakeHost(env={"PATH": "/usr/bin"}, files={PATH: ""}, commands={PATH: answer})
    assert read(numactl, host, launch_command=command(BINDS)) == expected


def test_it_is_asked_only_if_the_launcher_binds() -> None:
    host = FakeHost(env={"PATH": "/usr/bin"})
    assert read(numactl, host, launch_command=command(BINDS)) == Numactl()
    for line in ("deepspeed t.py --bind_cores_to_rank", "torchrun t.py"):
        found = read(numactl, host, launch_command=command(line))
        assert isinstance(found, Missing)
        assert found.why is Why.NOT_ASKED


OLD, NEW = DeepSpeedInstall(version="0.15.4"), DeepSpeedInstall(version="0.16.0")
ON_CPU = DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator="cpu")
ON_GPU = DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator="cuda")


@pytest.mark.parametrize(
    ("line", "install", "live", "variables", "files", "asked"),
    [
        pytest.param("deepspeed t.py", OLD, ON_CPU, {}, (), True, id="the launcher counts nodes"),
        pytest.param("deepspeed t.py", NEW, ON_CPU, {}, (), False, id="a release that catches it"),
        pytest.param("deepspeed t.py", OLD, ON_GPU, {}, (), False, id="a GPU is used"),
        pytest.param("torchrun t.py", OLD, ON_CPU, {}, (), False, id="another launcher"),
        pytest.param(
            "deepspeed --hostfile h t.py", OLD, ON_CPU, {}, (), False, id="a hostfile says"
        ),
        pytest.param(
            "deepspeed t.py",
            OLD,
            ON_CPU,
            {},
            ("/job/hostfile",),
            False,
            id="the usual hostfile says",
        ),
        pytest.param(
            "deepspeed t.py", OLD, ON_CPU, {"LOCAL_SIZE": "2"}, (), False, id="a variable says"
        ),
    ],
)
def test_the_launcher_of_old_releases_counts_nodes_for_the_cpu(
    line: str,
    install: DeepSpeedInstall,
    live: DeepSpeedLive,
    variables: dict[str, str],
    files: tuple[str, ...],
    asked: bool,
) -> None:
    found = read(
        numactl,
        FakeHost(env={"PATH": "/usr/bin"}, files=dict.fromkeys(files, "")),
        launch_command=command(line),
        deep_speed_install=install,
        deep_speed_live=live,
        environment=env(**variables),
    )
    assert (found == Numactl(binds=False)) is asked
    assert isinstance(found, Missing) is not asked
