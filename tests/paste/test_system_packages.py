"""`dpkg -l`, `apt list`, `rpm -qa` and `conda list --json` in a paste; the runtimes of Docker."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import ContainerRuntimes, Missing, RunNeeds, Status
from dsdoctor.job.resolve import resolve
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.words import may_state
from dsdoctor.probes.container_runtimes import container_runtimes
from dsdoctor.testing import FakeHost, read
from tests.paste.reading import stated, value

REGISTRY = packs.load(builtin_only=True)
DPKG = """\
ii  libnvidia-compute-550:amd64  550.120.01-0ubuntu0.24.04.1  amd64  NVIDIA libcompute package
ii  libnvidia-compute-550:i386   550.120.01-0ubuntu0.24.04.1  i386   NVIDIA libcompute package
rc  libnvidia-compute-535:amd64  535.54.03-0ubuntu0.24.04.1   amd64  NVIDIA libcompute package
"""
NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Mon Feb  3 08:00:00 UTC 2025\n"
DOCKER = """\
 Server Version: 27.1.0
 Runtimes: {}
 Default Runtime: runc
 OSType: linux
"""
COMPOSE = """\
services:
  trainer:
    image: example/trainer:1
    runtime: {}
"""


def problems(text: str) -> set[str]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    return {one.condition for one in report.findings if one.status in (Status.FAIL, Status.WARN)}


@pytest.mark.parametrize(
    ("text", "path", "version"),
    [
        pytest.param(DPKG, "lib_cuda/version", "550.120.01", id="dpkg"),
        pytest.param(
            "ii  libcuda1:amd64  535.54.03-1  amd64  NVIDIA CUDA Driver Library\n",
            "lib_cuda/version", "535.54.03", id="Debian",
        ),
        pytest.param(
            "libnvidia-compute-570-server/noble,now 570.10.04-0ubuntu1 amd64 [installed,automatic]\n",
            "lib_cuda/version", "570.10.04", id="apt",
        ),
        pytest.param(
            "nvidia-driver-cuda-libs-565.20.05-1.el9.x86_64\n",
            "lib_cuda/version", "565.20.05", id="rpm",
        ),
        pytest.param(
            "ii  nvidia-fabricmanager-570  570.10.04-1  amd64  Fabric Manager for NVSwitch\n",
            "fabric_manager/version", "570.10.04", id="the fabric manager of dpkg",
        ),
        pytest.param(
            "nvidia-fabric-manager-570.10.04-1.x86_64\n",
            "fabric_manager/version", "570.10.04", id="the fabric manager of rpm",
        ),
    ],
)  # fmt: skip
def test_versions_of_packages(text: str, path: str, version: str) -> None:
    assert may_state(text)
    assert value(stated(text), path) == version


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DPKG.splitlines()[2] + "\n", id="only its configuration is left"),
        pytest.param(DPKG + DPKG.replace("550", "560"), id="two of them"),
        pytest.param("apt install libnvidia-compute-550\n", id="advice"),
    ],
)
def test_what_says_no_version(text: str) -> None:
    found = environment_of(text)
    assert found is None or "lib_cuda" not in found.facts


def test_libraries_of_an_upgrade_and_the_old_module() -> None:
    assert problems(DPKG + NVRM.format("550.40.07")) == {"driver-library-mismatch"}
    assert problems(DPKG + NVRM.format("550.120.01")) == set()


def test_conda_list_as_json() -> None:
    text = """\
[
  {
    "build_string": "py3.11_cuda12.1_cudnn9.1.0_0",
    "channel": "pytorch",
    "name": "pytorch",
    "version": "2.4.0"
  },
  {
    "build_string": "pypi_0",
    "name": "deepspeed",
    "version": "0.15.0"
  }
]
"""
    assert may_state(text)
    found = stated(text)
    assert value(found, "torch_build/cuda") == "12.1"
    assert value(found, "deep_speed_install/version") == "0.15.0"


def test_a_list_of_objects_without_builds() -> None:
    text = '[\n  {\n    "name": "deepspeed",\n    "version": "0.15.0"\n  }\n]\n'
    assert environment_of(text) is None


@pytest.mark.parametrize(
    ("known", "wanted", "expected"),
    [
        pytest.param("io.containerd.runc.v2 runc", "nvidia", True, id="not installed"),
        pytest.param("io.containerd.runc.v2 nvidia runc", "nvidia", False, id="installed"),
        pytest.param("runc", "runc", False, id="the default one"),
    ],
)
def test_the_runtime_of_a_compose_file(known: str, wanted: str, expected: bool) -> None:
    text = f"```\n{DOCKER.format(known)}```\n```yaml\n{COMPOSE.format(wanted)}```\n"
    assert ("docker-gpu-runtime-missing" in problems(text)) is expected


def test_the_runtime_of_docker_run() -> None:
    """Asked of this machine's Docker, if the command names one."""
    command = "docker run --runtime=nvidia -it image deepspeed train.py"
    host = FakeHost(
        env={"PATH": "/usr/bin"},
        files={"/usr/bin/docker": ""},
        commands={"/usr/bin/docker info": '"runc" {"runc": {"path": "runc"}}\n'},
        queries={"hostname": "n1", "home": "/home/user"},
    )
    run = resolve(RunNeeds(command=tuple(command.split())), host)
    assert run.container_runtime == "nvidia"
    found = read(container_runtimes, host, run_needs=run)
    assert found == ContainerRuntimes(names=("runc",), default="runc")
    for answer in ("no JSON\n", "[]\n"):
        host.commands = {"/usr/bin/docker info": answer}
        assert isinstance(read(container_runtimes, host, run_needs=run), Missing)
    without = resolve(RunNeeds(command=("deepspeed", "train.py")), host)
    assert isinstance(read(container_runtimes, host, run_needs=without), Missing)


def test_a_system_without_numa() -> None:
    """Only matters to a command that lets the launcher bind ranks."""
    shown = "$ numactl --hardware\nNo NUMA available on this system\n"
    binds = "deepspeed --bind_cores_to_rank train.py"
    assert "numactl-unusable" in problems(f"```\n$ {binds}\n{shown}```\n")
    assert "numactl-unusable" not in problems(f"```\n$ deepspeed train.py\n$ free\n{shown}```\n")
