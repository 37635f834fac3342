"""`lint` judges Dockerfiles: the image as a partial machine, and its commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.judge import Policy
from dsdoctor.lint import FileReport, Linter
from dsdoctor.model.finding import Status
from dsdoctor.packs import load

REGISTRY = load(builtin_only=True)
RUNTIME = "FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\n"


def lint(tmp_path: Path, text: str, name: str = "Dockerfile") -> FileReport | None:
    path = tmp_path / name
    path.write_text(text)
    return Linter(REGISTRY, list(REGISTRY), "0.19.8", Policy()).lint(path, name)


def found(tmp_path: Path, text: str) -> list[tuple[Status, str, int]]:
    report = lint(tmp_path, text)
    assert report is not None
    assert report.kind == "image"
    return [(one.status, one.condition, one.evidence.get("line", 0)) for one in report.findings]


def test_an_image_without_nvcc_cannot_build_ops(tmp_path: Path) -> None:
    text = f"{RUNTIME}RUN DS_BUILD_OPS=1 pip install deepspeed==0.16.4\n"
    assert found(tmp_path, text) == [(Status.WARN, "cuda-toolkit-missing", 1)]
    assert found(tmp_path, text.replace("runtime", "devel")) == []
    assert found(tmp_path, f"{RUNTIME}RUN pip install transformers==4.46.0\n") == []


@pytest.mark.parametrize(
    "step",
    [
        'CMD ["torchrun", "--nproc_per_node", "8", "--nnodez", "2", "train.py"]',
        "RUN true && \\\n  torchrun --nproc_per_node 8 --nnodez 2 train.py",
        "ENTRYPOINT torchrun --nproc_per_node 8 --nnodez 2 train.py",
    ],
    ids=["words", "a joined line", "a shell"],
)
def test_commands_are_judged_at_their_step(tmp_path: Path, step: str) -> None:
    text = f"# syntax=docker/dockerfile:1\nFROM a:1\nCOPY . /app\n{step}\n"
    assert found(tmp_path, text) == [(Status.FAIL, "launch-option-refused", 4)]
    assert found(tmp_path, text.replace("--nnodez", "--nnodes")) == []


def test_variables_of_an_image_are_judged(tmp_path: Path) -> None:
    text = f"{RUNTIME}ENV NCCL_P2P_DISABL=1\nCMD torchrun train.py\n"
    assert found(tmp_path, text) == [(Status.WARN, "nccl-unknown-variable", 2)]
    late = f"{RUNTIME}CMD torchrun train.py\nENV NCCL_SHM_DISABL=1\n"
    assert found(tmp_path, late) == [(Status.WARN, "nccl-unknown-variable", 3)]
    # what a switch costs is up to the GPUs
    assert found(tmp_path, text.replace("DISABL=", "DISABLE=")) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("Dockerfile", "FROM node:22\nCMD npm start\n", id="another image"),
        pytest.param("Dockerfile", "FROM $BASE\nRUN \\\n", id="cut off"),
        pytest.param("Dockerfile", "", id="empty"),
        pytest.param("Dockerfile.md", "# How to use the Dockerfile\n", id="a page about it"),
        pytest.param("notes.txt", f"{RUNTIME}CMD torchrun --nnodez 2 t.py\n", id="another name"),
    ],
)
def test_what_says_nothing_is_left_out(tmp_path: Path, name: str, text: str) -> None:
    assert lint(tmp_path, text, name) is None


def test_whoever_starts_the_container_completes_the_command(tmp_path: Path) -> None:
    parser = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--model', required=True)\n"
    )
    (tmp_path / "train.py").write_text(f"{parser}args = p.parse_args()\n")
    text = 'FROM a:1\nENTRYPOINT ["torchrun", "--nnodes", "2", "train.py"]\n'
    assert found(tmp_path, text) == []
    (tmp_path / "run.sh").write_text("torchrun train.py\n")
    linter = Linter(REGISTRY, list(REGISTRY), "0.19.8", Policy())
    report = linter.lint(tmp_path / "run.sh", "run.sh")
    assert report is not None
    assert [one.condition for one in report.findings] == ["script-option-refused"]


def test_only_the_last_stage_counts(tmp_path: Path) -> None:
    text = f"FROM a:1 AS build\nRUN torchrun --nnodez 2 t.py\n{RUNTIME}CMD torchrun t.py\n"
    assert found(tmp_path, text) == []


def test_a_dockerfile_gives_its_variables_to_its_command(tmp_path: Path) -> None:
    text = "FROM x\nARG N=eight\nENV COUNT=${N}\nCMD torchrun --nproc_per_node=$COUNT t.py\n"
    report = lint(tmp_path, text)
    assert report is not None
    (message,) = [one.message for one in report.findings]
    assert "eight" in message
    assert found(tmp_path, text.replace("CMD torchrun", "RUN torchrun"))
    listed = text.replace(
        "CMD torchrun --nproc_per_node=$COUNT t.py",
        'CMD ["torchrun", "--nproc_per_node=$COUNT", "t.py"]',
    )
    report = lint(tmp_path, listed)
    assert report is not None
    assert report.not_judged == (4,)
