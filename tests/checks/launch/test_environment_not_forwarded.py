"""Rows of `environment-not-forwarded`."""

from __future__ import annotations

import pytest

from dsdoctor.hostfile import parse_hostfile
from dsdoctor.probes.hostfile import parse_env_file
from dsdoctor.testing import judge
from dsdoctor_checks.launch import environment_not_forwarded
from tests.checks.launch.rows import command, env

CHECK = environment_not_forwarded.ranks_get_the_same
TWO = parse_hostfile("a slots=4\nb slots=4\n", "hosts")
ONE = parse_hostfile("a slots=4\n", "hosts")
FILE = parse_env_file("LD_LIBRARY_PATH=/x\n", "/root/.deepspeed_env")


@pytest.mark.parametrize(
    ("variables", "line", "status"),
    [
        pytest.param(
            {}, "deepspeed t.py", "ok", id="the launcher's environment has nothing special"
        ),
        pytest.param(
            {"PATH": "/bin", "HOME": "/root", "CUDA_VISIBLE_DEVICES": "0"},
            "deepspeed t.py",
            "ok",
            id="variables that each node sets for itself",
        ),
        pytest.param(
            {"NCCL_DEBUG": "INFO", "PYTHONPATH": "/src"},
            "deepspeed t.py",
            "ok",
            id="variables that the launcher forwards",
        ),
        pytest.param(
            {"LD_LIBRARY_PATH": "/x"},
            "deepspeed t.py",
            "ok",
            id="a variable that the environment file forwards",
        ),  # the file has it
        pytest.param(
            {"HF_HOME": "/data"}, "deepspeed t.py", "warn", id="HF_HOME stays on the first node"
        ),
        pytest.param(
            {"TORCH_EXTENSIONS_DIR": "/fast"},
            "deepspeed t.py",
            "warn",
            id="TORCH_EXTENSIONS_DIR stays on the first node",
        ),
        pytest.param(
            {"HF_HOME": "/data"}, "torchrun t.py", "skip", id="torchrun is started on each node"
        ),
        pytest.param(
            {"HF_HOME": "/data"},
            "deepspeed --launcher slurm t.py",
            "skip",
            id="Slurm forwards the whole environment",
        ),
    ],
)
def test_rows(variables: dict[str, str], line: str, status: str) -> None:
    assert (
        judge(
            CHECK,
            environment=env(**variables),
            hostfile=TWO,
            launch_command=command(line),
            deep_speed_env_file=FILE,
        ).statuses
        == status.split()
    )


def test_one_node_and_no_file() -> None:
    variables = env(LD_LIBRARY_PATH="/x", HF_HOME="/data")
    assert judge(CHECK, environment=variables, hostfile=ONE, deep_speed_env_file=FILE).statuses == [
        "skip"
    ]
    (finding,) = judge(CHECK, environment=variables, hostfile=TWO).findings
    assert finding.evidence["variables"] == ["HF_HOME", "LD_LIBRARY_PATH"]
    assert "export them to the other node" in finding.message
