"""`dsdoctor run` over a job on the GPU, with the errors that torch itself raises."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import fakenvml, scenarios
from tests.nvml.scenarios import GPU_IS_LOST
from tests.standin import bed
from tests.standin.conftest import machine

pytestmark = [pytest.mark.standin, pytest.mark.timeout(300)]
Shown = Callable[..., dict[str, str]]

TRAIN = """
import torch
x = torch.randn(64, 64, device="cuda")
for step in range(40):
    print(f"step {step} loss: {(x @ x).mean().item():.4f}", flush=True)
"""
FILL = (
    TRAIN + "kept = [torch.empty(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(64)]\n"
)

#: Of a rank that starts with a number that its host has no GPU for.
ORDINAL = "import torch\ntorch.cuda.set_device(5)\n"
#: Works until a file is there, then waits for the GPU.
UNTIL = """
import os, sys, time, torch
x = torch.randn(64, 64, device="cuda")
step = 0
while not os.path.exists(sys.argv[1]):
    step += 1
    print(f"step {step} loss: {(x @ x).mean().item():.4f}", flush=True)
    time.sleep(0.2)
torch.cuda.synchronize()
"""

NAN = """
import torch
x = torch.ones(64, 64, device="cuda")
for step in range(40):
    print(f"step {step} loss: {(x @ x).mean().item():.4f}", flush=True)
    x = x / (x - x) - x / (x - x) if step == 9 else x
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
from accelerate.utils import DummyOptim
from torch.utils.data import DataLoader, TensorDataset
one = Accelerator()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
rows = torch.randn(512, 64)
data = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=4)
model, optimizer, data = one.prepare(model, DummyOptim(model.parameters()), data)
for step, (x, y) in enumerate(data):
    loss = ((model(x.to(one.device, torch.bfloat16)) - y.to(one.device)) ** 2).mean()
    one.backward(loss)
    optimizer.step()
    if one.is_main_process:
        print(f"step {step} loss: {loss.item():.4f}", flush=True)
uuid = torch.cuda.get_device_properties(one.device).uuid
print(f"rank {one.process_index} of {one.num_processes} on GPU-{uuid}", flush=True)
one.end_training()
"""


def watched(env: dict[str, str], code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "train.py"
    script.write_text(code, "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "dsdoctor", "run", "--", sys.executable, str(script)],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def test_a_job_that_works_is_left_alone(shown: Shown, tmp_path: Path) -> None:
    done = watched(shown(), TRAIN, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cause:" not in done.stdout + done.stderr
    assert done.stdout.count(" loss: ") == 40


@pytest.mark.parametrize(
    ("fault", "code", "condition", "words"),
    [
        pytest.param(
            {},
            FILL,
            "gpu-oom",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB",
            id="memory that runs out",
        ),
        pytest.param(
            {"fail": {"cudaLaunchKernel@0": 700}, "after": {"cudaLaunchKernel@0": 60}},
            TRAIN,
            "cuda-kernel-failed",
            "illegal memory access",
            id="a kernel at an illegal address",
        ),
        pytest.param(
            {"fail": {"cudaLaunchKernel@0": 214}, "after": {"cudaLaunchKernel@0": 60}},
            TRAIN,
            "gpu-hardware-fault",
            "uncorrectable ECC error",
            id="an ECC error in a kernel",
        ),
        pytest.param(
            {"fail": {"cudaLaunchKernel@0": 209}, "after": {"cudaLaunchKernel@0": 0}},
            TRAIN,
            "gpu-arch-unsupported",
            "no kernel image",
            id="a kernel of another architecture",
        ),
        pytest.param(
            {},
            ORDINAL,
            "invalid-device-ordinal",
            "CUDA error: invalid device ordinal",
            id="a GPU that does not exist",
        ),
    ],
)
def test_what_ended_it_is_named(
    shown: Shown, tmp_path: Path, fault: dict[str, Any], code: str, condition: str, words: str
) -> None:
    done = watched(shown(**fault), code, tmp_path)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert f"dsdoctor: cause: {condition}: " in said, said
    assert words in said


def _lost(scenario: fakenvml.Scenario) -> None:
    scenario["fail"] = {**scenario["fail"], "*@0": GPU_IS_LOST}


def _fell_off(scenario: fakenvml.Scenario) -> None:
    scenario["xid_events"] = [{"gpu": 0, "code": 79}]


@pytest.mark.parametrize(("change", "notice", "words"), [
    (_lost, "GPU 0 is lost", "GPU 0"), (_fell_off, "reports Xid 79", "Xid 79"),
])  # fmt: skip
def test_a_gpu_that_goes_under_a_job_is_the_cause(
    tmp_path: Path, change: Callable[[fakenvml.Scenario], None], notice: str, words: str
) -> None:
    """NVML says so while the job runs; then CUDA fails in the job, in torch's own words."""
    scenario = machine(fail={"cudaDeviceSynchronize@0": 719})
    env = bed.environment(scenario, tmp_path / "bed", FAKE_NVML_LIVE="1", PYTHONUNBUFFERED="1")
    script, end = tmp_path / "train.py", tmp_path / "end"
    script.write_text(UNTIL, "utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "dsdoctor", "run", "--preflight", "off", "--every", "0.2s", "--",
         sys.executable, str(script), str(end)],
        env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            assert child.stdout is not None
            assert child.stderr is not None
            while " loss: " not in (line := child.stdout.readline()):
                assert line, child.stderr.read()
            change(scenario)
            fresh = tmp_path / "fresh.conf"
            fakenvml.write_scenario(fresh, scenario)
            fresh.replace(env["FAKE_NVML"])
            while notice not in (line := child.stderr.readline()):
                assert line, "dsdoctor ended without it"
            end.touch()
            out, said = child.communicate(timeout=200)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode != 0
    assert "unspecified launch failure" in out + said
    (cause,) = [part for part in said.splitlines() if part.startswith("dsdoctor: cause: ")]
    assert cause.startswith("dsdoctor: cause: gpu-hardware-fault: "), said
    (record,) = (tmp_path / "bed" / "runs").glob("*/run.json")
    assert words in json.dumps(json.loads(record.read_text("utf-8")))


def test_a_loss_that_is_not_a_number_is_said(shown: Shown, tmp_path: Path) -> None:
    done = watched(shown(), NAN, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the loss is NaN" in done.stderr


def test_a_plan_runs_through_accelerate(shown: Shown, tmp_path: Path) -> None:
    """`recommend` writes launch.sh, accelerate starts a rank on each GPU, `run` watches it."""
    env = shown(memory=80 << 30)
    plan = tmp_path / "plan"
    (tmp_path / "train.py").write_text(ACCELERATE, "utf-8")
    status, _ = bed.dsdoctor(
        env, "recommend", "--model", "gpt2", "--gpus", "0,1", "--launcher", "accelerate",
        "--micro-batch", "4", "--script", str(tmp_path / "train.py"), "-o", str(plan),
    )  # fmt: skip
    assert status == 0
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "run", "--", str(plan / "launch.sh")],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "cause:" not in done.stderr
    uuids = [gpu["uuid"] for gpu in scenarios.h100_x8()["gpus"][:2]]
    for rank, uuid in enumerate(uuids):
        assert f"rank {rank} of 2 on {uuid}" in done.stdout
    assert done.stdout.count(" loss: ") == 64


@pytest.mark.timeout(960)
def test_the_gpu_suite_passes(shown: Shown) -> None:
    """`tests/gpu`, as a machine with a GPU runs it, but for memory: that needs one of 80 GiB."""
    env = {**shown(gpus=2, memory=6 << 30), "DSDOCTOR_GPU_TESTS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", "tests/gpu",
         "-k", "check or recommend or fix or fault or (smoke and bf16) or kernel"],
        env=env, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    assert os.linesep + "0 passed" not in done.stdout
