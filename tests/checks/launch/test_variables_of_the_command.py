"""Variables in front of the command are the job's, as those of the shell are."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.api import Environment, LaunchCommand
from dsdoctor.judge import judge
from dsdoctor.model.finding import Finding
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.probes.command_line import parse_command
from tests.support.composed import machine
from tests.support.described import Described

REGISTRY = packs.load(builtin_only=True)
SOUND = Described(
    gpus="2xNVIDIA A100 80GB PCIe",
    torch="2.4.0+cu121",
    packages={"huggingface-hub": "0.26.2", "transformers": "4.46.3", "accelerate": "1.1.1"},
)


def found(condition: str, in_front: str, of_shell: str = "") -> list[Finding]:
    """What a check says of a job with these variables."""
    snapshot: Snapshot = machine(
        msgspec.structs.replace(
            SOUND, variables=dict(word.split("=", 1) for word in of_shell.split())
        )
    )
    snapshot.put(parse_command([*in_front.split(), "torchrun", "--nproc_per_node=2", "t.py"]))
    assert snapshot.get(Environment)
    assert snapshot.get(LaunchCommand)
    unit = REGISTRY.find(condition)
    assert unit is not None
    findings = judge(snapshot, [unit], REGISTRY).findings
    return [one for one in findings if one.status.value in ("warn", "fail")]


@pytest.mark.parametrize(
    ("condition", "setting", "sound"),
    [
        pytest.param(
            "cuda-launch-blocking-set", "CUDA_LAUNCH_BLOCKING=1", "CUDA_LAUNCH_BLOCKING=0", id="kernels"
        ),
        pytest.param(
            "alloc-conf-unknown",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            id="allocator",
        ),
        pytest.param(
            "torch-nccl-variable-renamed",
            "NCCL_ASYNC_ERROR_HANDLING=1",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
            id="names of torch",
        ),
        pytest.param(
            "variable-refused",
            "TORCH_DISTRIBUTED_DEBUG=ALL",
            "TORCH_DISTRIBUTED_DEBUG=DETAIL",
            id="levels",
        ),
        pytest.param(
            "hf-transfer-missing",
            "HF_HUB_ENABLE_HF_TRANSFER=1",
            "HF_HUB_ENABLE_HF_TRANSFER=0",
            id="the hub",
        ),
        pytest.param(
            "nvcc-arch-unsupported",
            "TORCH_CUDA_ARCH_LIST=7.5",
            "TORCH_CUDA_ARCH_LIST=8.0",
            id="capabilities",
        ),
    ],
)  # fmt: skip
def test_a_variable_in_front_is_judged(condition: str, setting: str, sound: str) -> None:
    (of_shell,) = found(condition, "", setting)
    (in_front,) = found(condition, setting)
    assert in_front.message == of_shell.message
    assert in_front.status is of_shell.status
    assert not in_front.fixes or in_front.by_hand
    assert not of_shell.by_hand
    same = sound.split("=", maxsplit=1)[0] == setting.split("=", maxsplit=1)[0]
    assert found(condition, sound, setting if same else "") == [], "the command's own decides"
    assert found(condition, setting.split("=", maxsplit=1)[0] + "=$VALUE") == [], (
        "the shell fills it in"
    )


def test_what_removes_a_variable_of_the_command() -> None:
    (finding,) = found("cuda-launch-blocking-set", "CUDA_LAUNCH_BLOCKING=1")
    assert finding.hint == "remove `CUDA_LAUNCH_BLOCKING` from the command"
    (finding,) = found("cuda-launch-blocking-set", "", "CUDA_LAUNCH_BLOCKING=1")
    assert finding.hint == "run `unset CUDA_LAUNCH_BLOCKING`"
