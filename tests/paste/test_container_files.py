"""Kubernetes manifests, compose files and Dockerfiles: what the container of a job is given."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.finding import Status
from dsdoctor.paste.environment import environment_of
from tests.paste.reading import flat, stated, value

REGISTRY = packs.load()
GIB = 1 << 30
POD = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      runtimeClassName: nvidia
      containers:
      - name: sidecar
        image: busybox
      - name: train
        image: registry.example/train:7
        command: ["torchrun", "--nproc_per_node=4", "train.py"]
        args: ["--deepspeed", "ds.json"]
        env:
        - name: NCCL_SOCKET_IFNAME
          value: eth7
        - name: NCCL_IB_HCA
          value: "<your adapter>"
        - name: HF_TOKEN
          valueFrom:
            secretKeyRef: {name: hub, key: token}
        resources:
          limits:
            nvidia.com/gpu: 2
            memory: 16Gi
            cpu: 7500m
        volumeMounts:
        - mountPath: /dev/shm
          name: shared
      volumes:
      - name: shared
        emptyDir: {medium: Memory, sizeLimit: 256Mi}
      restartPolicy: Never
"""
DESCRIBED = """\
Name:             train-0
Namespace:        default
Containers:
  train:
    Container ID:
    Image:         registry.example/train:7
    Command:
      /bin/bash
      -c
      export OMP_NUM_THREADS=3
      torchrun --nproc_per_node=4 train.py --deepspeed ds.json
    State:          Waiting
      Reason:       CrashLoopBackOff
    Ready:          False
    Limits:
      cpu:             7500m
      memory:          16Gi
      nvidia.com/gpu:  2
    Requests:
      cpu:             7500m
      nvidia.com/gpu:  2
    Environment:
      NCCL_SOCKET_IFNAME:  eth7
      HF_TOKEN:            <set to the key 'token' in secret 'hub'>  Optional: false
    Mounts:
      /dev/shm from shared (rw)
Conditions:
  Type              Status
  Ready             False
Volumes:
  shared:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  256Mi
QoS Class:      Burstable
"""
COMPOSE = """\
services:
  train:
    image: registry.example/train:7
    shm_size: "256mb"
    mem_limit: 16g
    environment:
      - NCCL_SOCKET_IFNAME=eth7
      - WANDB_API_KEY=${KEY}
    command: bash -c "export OMP_NUM_THREADS=3 && torchrun --nproc_per_node=4 train.py"
    ulimits: {memlock: 65536, stack: -1}
    deploy:
      resources:
        reservations:
          devices:
            - {driver: nvidia, count: 2, capabilities: [gpu]}
volumes: {}
"""
DOCKERFILE = """\
ARG BASE=ubuntu
FROM nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04 AS base
ENV NCCL_SOCKET_IFNAME=eth7 \\
    OMP_NUM_THREADS=3
# tools
RUN apt-get update && \\
    apt-get install -y python3-pip
FROM base
RUN pip install torch==2.3.0 --index-url https://download.pytorch.org/whl/cu121 \\
    && pip install --no-build-isolation "deepspeed==0.14.4"
CMD ["torchrun", "--nproc_per_node=4", "train.py"]
"""
TORCH = "FROM pytorch/pytorch:2.3.0-cuda12.1-cudnn8-{}\nRUN {}\n"
ALL = {"pod": POD, "compose": COMPOSE, "described": DESCRIBED, "dockerfile": DOCKERFILE}


def fenced(text: str) -> str:
    return f"It fails with\n```\n{text}```\nWhat can I do?\n"


@pytest.mark.parametrize("form", [str, fenced])
@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("pod", "resources/shm_total_bytes", 256 << 20),
        ("pod", "resources/memory_limit_bytes", 16 * GIB),
        ("pod", "resources/cpus_usable", 7),
        ("pod", "environment/variables", {"NCCL_SOCKET_IFNAME": "eth7"}),
        ("pod", "launch_command/script_args", ("--deepspeed", "ds.json")),
        ("pod", "run_needs/container_gpus", 2),
        ("pod", "run_needs/container_gpus_by", "nvidia.com/gpu: 2"),
        ("described", "resources/shm_total_bytes", 256 << 20),
        ("described", "resources/memory_limit_bytes", 16 * GIB),
        ("described", "resources/cpus_usable", 7),
        (
            "described",
            "environment/variables",
            {"NCCL_SOCKET_IFNAME": "eth7", "OMP_NUM_THREADS": "3"},
        ),
        ("described", "launch_command/num_gpus", 4),
        ("described", "run_needs/container_gpus", 2),
        ("compose", "resources/shm_total_bytes", 256 << 20),
        ("compose", "resources/memory_limit_bytes", 16 * GIB),
        ("compose", "resources/limit_memlock", 65536),
        ("compose", "resources/limit_stack", None),
        (
            "compose",
            "environment/variables",
            {"NCCL_SOCKET_IFNAME": "eth7", "OMP_NUM_THREADS": "3"},
        ),
        ("compose", "launch_command/num_gpus", 4),
        ("compose", "run_needs/container_gpus", 2),
        ("dockerfile", "cuda_toolkits/found", [{"version": None, "nvcc": None}]),
        ("dockerfile", "os_info/distribution", "ubuntu 22.04"),
        ("dockerfile", "torch_build/version", "2.3.0"),
        ("dockerfile", "torch_build/cuda", "12.1"),
        ("dockerfile", "deep_speed_install/version", "0.14.4"),
        (
            "dockerfile",
            "environment/variables",
            {"NCCL_SOCKET_IFNAME": "eth7", "OMP_NUM_THREADS": "3"},
        ),
        ("dockerfile", "launch_command/script", "train.py"),
    ],
)
def test_what_is_stated(form: Any, name: str, path: str, expected: Any) -> None:
    assert value(stated(form(ALL[name])), path) == expected


def test_each_value_has_its_line() -> None:
    found = stated(POD).sources
    assert "sizeLimit" in found["resources"]["shm_total_bytes"].text
    assert "NCCL_SOCKET_IFNAME" in found["environment"]["variables.NCCL_SOCKET_IFNAME"].text
    assert "torchrun" in found["launch_command"]["num_gpus"].text


def facts_of(text: str) -> dict[str, Any]:
    found = environment_of(text)
    return {} if found is None else flat(found.facts)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(POD.replace("medium: Memory, ", ""), "shm", id="a folder on the disk"),
        pytest.param(POD.replace("mountPath: /dev/shm", "mountPath: /x"), "shm", id="elsewhere"),
        pytest.param(
            COMPOSE.replace("    mem_limit", "    ipc: host\n    mem_limit"),
            "shm",
            id="shared memory of the host",
        ),
        pytest.param(
            "$ docker run --ipc=host --shm-size=64m img\n", "shm", id="docker run of the host"
        ),
        pytest.param(POD.replace("nvidia.com/gpu: 2", "nvidia.com/mig-1g.5gb: 2"), "container_gpus",
                     id="slices"),
        pytest.param(COMPOSE.replace("count: 2", "count: all"), "container_gpus", id="all GPUs"),
        pytest.param(DOCKERFILE.replace("nvidia/cuda:12.1.1", "nvidia/cuda:${VERSION}"),
                     "cuda_toolkits", id="an image that an argument chooses"),
        pytest.param(
            DOCKERFILE.replace("install -y", "install -y cuda-nvcc-12-1"),
            "cuda_toolkits",
            id="an image to which nvcc is added",
        ),
        pytest.param(
            DOCKERFILE.replace("CMD", "RUN pip install vllm\nCMD"),
            "torch_build",
            id="a package that may bring another torch",
        ),
        pytest.param(
            TORCH.format("runtime", "pip install -r requirements.txt"),
            "torch_build",
            id="requirements that are not shown",
        ),
        pytest.param(fenced(POD)[:-30].replace("\n```\nW", ""), "/", id="a block without an end"),
        pytest.param("Try this Dockerfile:\n" + fenced(DOCKERFILE)[14:], "/", id="advice"),
        pytest.param("FROM users\nSELECT 1\n", "/", id="no Dockerfile"),
    ],
)  # fmt: skip
def test_what_is_not_stated(text: str, path: str) -> None:
    found = facts_of(text).items()
    # a request has a default in each field
    assert not [name for name, one in found if path in name and (one or "run_needs" not in name)]


def test_the_gpus_of_a_container_are_its_ranks() -> None:
    report = judge(stated(POD), list(REGISTRY), REGISTRY)
    (found,) = (one for one in report.findings if one.condition == "shm-too-small")
    assert "a job of 2 ranks" in found.message
    assert "`emptyDir`" in found.hint


def bad(text: str) -> set[str]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    return {f.condition for f in report.findings if f.status in (Status.WARN, Status.FAIL)}


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        pytest.param(POD, {"invalid-device-ordinal", "shm-too-small"}, id="pod"),
        pytest.param(POD.replace("gpu: 2", "gpu: 4").replace("256Mi", "64Gi"), set(), id="a sound pod"),
        pytest.param(DESCRIBED, {"invalid-device-ordinal", "shm-too-small"}, id="described pod"),
        pytest.param(COMPOSE, {"invalid-device-ordinal", "shm-too-small"}, id="compose"),
        pytest.param(
            COMPOSE.replace("count: 2", "count: 4").replace("256mb", "64gb").replace("memlock: 65536, ", ""),
            set(),
            id="a sound compose file",
        ),
        pytest.param(
            "$ docker run --gpus 2 --shm-size=64g img torchrun --nproc_per_node 4 train.py\n",
            {"invalid-device-ordinal"},
            id="docker run",
        ),
        pytest.param(
            "$ docker run --gpus '\"device=0,1\"' --shm-size=64g img torchrun --nproc_per_node 2 train.py\n",
            set(),
            id="a sound docker run",
        ),
        pytest.param(DOCKERFILE, {"cuda-toolkit-missing"}, id="an image without nvcc"),
        pytest.param(DOCKERFILE.replace("-runtime-", "-devel-"), set(), id="an image with nvcc"),
        pytest.param(TORCH.format("runtime", "pip install deepspeed"), {"cuda-toolkit-missing"},
                     id="torch's image without nvcc"),
        pytest.param(TORCH.format("devel", "pip install deepspeed"), set(), id="torch's image"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(text: str, conditions: set[str]) -> None:
    assert bad(text) == conditions


@pytest.mark.parametrize("form", [str, fenced])
@pytest.mark.parametrize("name", ALL)
def test_a_part_of_it_states_nothing_else(form: Any, name: str) -> None:
    """Cut from the front and from the end; outside a block, inside a line."""
    text = form(ALL[name])
    whole = facts_of(text)
    for place in range(0, len(text), 1 if form is str else 4):
        inside = re.fullmatch(r"\w\w", text[max(place - 1, 0) : place + 1])
        at_line = form is str and text[:place].rstrip(" ").endswith("\n")
        for part in (text[:place], text[place:]):
            if inside or (at_line and part == text[:place]):
                continue
            for path, one in facts_of(part).items():
                if path.startswith("/run_needs"):  # a request; its fields have defaults
                    continue
                assert whole.get(path, one) == one, part
                assert path in whole or not one, (path, part)


def test_a_command_below_a_file_keeps_its_line() -> None:
    text = (
        COMPOSE.replace("command:", "x-command:") + "\nI ran:\n$ torchrun --nproc_per_node=2 t.py\n"
    )
    found = stated(text)
    assert found.sources["launch_command"]["num_gpus"].text.endswith("t.py")
    assert "container_gpus" in found.facts["run_needs"]
    assert found.facts["run_needs"]["container_gpus"] is None


def test_a_pod_whose_first_rows_are_missing_has_no_container() -> None:
    assert environment_of(DESCRIBED.replace("  train:\n    Container ID:\n", "")) is None
