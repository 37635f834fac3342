"""Every provoked log, the rules of order, and input that means harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsdoctor import packs
from dsdoctor.cli.diagnose import command
from dsdoctor.logs import Source, diagnose, diagnose_paths, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.report.diagnosis import render

FOLDER = Path(__file__).parent / "provoked"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
SIGNATURES = signatures_of(packs.load(builtin_only=True))
#: Logs that do not tell what happened well enough; the answer must at least not be a false cause.
HARD: frozenset[str] = frozenset({"comm_tensor_sizes_differ"})


def read(*texts: str) -> Diagnosis:
    sources = [Source(name=f"{n}.log", data=text.encode(), rank=n) for n, text in enumerate(texts)]
    return diagnose(sources, SIGNATURES)


def first(*texts: str) -> str:
    found = read(*texts)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_provoked(case: dict[str, Any]) -> None:
    found = diagnose_paths([str(FOLDER / case["file"])], SIGNATURES)
    said = found.causes[0].condition if found.causes else found.outcome.value
    said = "none" if said == "clean" else said
    wanted = {case["label"], *case["also_ok"]}
    if case["label"] == "none":
        wanted.add("user-code")
    if case["name"] in HARD:
        assert not found.causes
    else:
        assert said in wanted


def test_a8_return_code_minus_9_is_the_kernel() -> None:
    text = "[ERROR] [launch.py:324:sigkill_handler] ['python'] exits with return code = -9\n"
    assert first(text) == "host-oom-killed"


def test_b9_watchdog_alone_is_a_timeout() -> None:
    watchdog = "[rank5]:[E ProcessGroupNCCL.cpp:1] [Rank 5] Watchdog caught collective operation timeout: x\n"
    assert first(watchdog) == "nccl-timeout-watchdog"


def test_b12_a_watchdog_is_the_victim_of_an_oom() -> None:
    watchdog = "[rank5]:[E ProcessGroupNCCL.cpp:1] [Rank 5] Watchdog caught collective operation timeout: x\n"
    oom = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    found = read(watchdog, oom)
    assert found.causes[0].condition == "gpu-oom"
    assert "nccl-timeout-watchdog" in found.causes[0].masks


def test_c1_oom_of_the_gpu_is_not_that_of_the_host() -> None:
    assert (
        first("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate\n") == "gpu-oom"
    )


def test_c2_started_without_launcher() -> None:
    assert first("ModuleNotFoundError: No module named 'mpi4py'\n") == "launched-without-deepspeed"


def test_c5_expect_states_what_was_active() -> None:
    text = "[INFO] [launch.py:1:main] dist_world_size=4\nDeepSpeedZeRoOffload initialize [begin]\nCPU Offload: False\n"
    source = Source(name="x", data=text.encode())
    found = diagnose([source], SIGNATURES, expect=["zero3", "offload", "4gpus", "bf16"])
    states = [answer.state for answer in found.expectations]
    assert states == ["proved", "refuted", "proved", "not-shown"]


def test_d3_no_module_and_loss_scale() -> None:
    assert first("ModuleNotFoundError: No module named 'deepspeed'\n") == "deepspeed-missing"
    floor = "Exception: Current loss scale already at minimum - cannot decrease scale anymore.\n"
    assert first(floor) == "fp16-overflow-or-nan"


def test_e6_no_gpu_and_cpu_torch() -> None:
    assert first("RuntimeError: No CUDA GPUs are available\n") == "no-gpu-visible"
    assert first("AssertionError: Torch not compiled with CUDA enabled\n") == "cpu-only-torch"


def test_no_space_in_shared_memory_is_not_the_disk() -> None:
    shm = "RuntimeError: unable to write to file </torch_9_1>: No space left on device (28)\n"
    assert first(shm) == "shm-too-small"
    assert first("OSError: [Errno 28] No space left on device: 'out/a.pt'\n") == "disk-full"


def test_ds_opt_adam_follows_from_the_build() -> None:
    text = (
        "/usr/bin/ld: cannot find -lcurand\nninja: build stopped: subcommand failed.\n"
        "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'\n"
    )
    found = read(text)
    assert found.causes[0].condition == "jit-build-header-or-lib-missing"
    assert "cpu-adam-unbuilt" in found.causes[0].masks


def test_the_first_rank_that_failed_by_time() -> None:
    late = "2024-01-01 10:00:09 Traceback (most recent call last):\n2024-01-01 10:00:09 ValueError: late\n"
    early = "2024-01-01 10:00:01 Traceback (most recent call last):\n2024-01-01 10:00:01 KeyError: 'early'\n"
    error = read(late, early).first_error
    assert error is not None
    assert (error.rank, error.type) == (1, "KeyError")


def test_user_code_shows_its_frame() -> None:
    text = (
        '[rank1]: Traceback (most recent call last):\n[rank1]:   File "/home/u/train.py", line 7, in f\n'
        "[rank1]:     d['x']\n[rank1]: KeyError: 'x'\n"
    )
    found = read(text)
    assert found.outcome is Outcome.USER_CODE
    assert found.first_error is not None
    assert (found.first_error.rank, found.first_error.file, found.first_error.line) == (
        1, "/home/u/train.py", 7,
    )  # fmt: skip


def test_a_progress_bar_does_not_hide_the_cause() -> None:
    assert first("10%|#\r20%|##\rRuntimeError: No CUDA GPUs are available\r\n") == "no-gpu-visible"


@pytest.mark.parametrize(
    "line",
    [
        "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
        "NCCL INFO NET/Plugin : Could not find : libnccl-net.so",
        "misc/ibvwrap.cu:61 WARN Failed to open libibverbs.so[.1]",
        "[WARNING] [runner.py:1:fetch_hostfile] Unable to find hostfile, will proceed with training",
        "[INFO] [loss_scaler.py:1] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536",
        "Warning: Grad strides do not match bucket view strides.",
        "x.py:9: FutureWarning: `torch.cuda.amp.custom_fwd(args...)` is deprecated.",
    ],
)
def test_harmless_lines_are_left_in_peace(line: str) -> None:
    assert read(line + "\nstep 1 loss 2.0\n").outcome is Outcome.CLEAN


def test_an_empty_log_is_not_clean() -> None:
    found = read("")
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.truncated


def test_hostile_input_is_harmless() -> None:
    text = (
        "\x1b]0;owned\x07\x00RuntimeError: No CUDA GPUs are available \x1b[2J\x9b31m\u202e "
        "hf_abcdefghijklmnopqrstuvwxyz0123 {0.__class__} %s [bold]\n"
    )
    shown = render(read(text))
    assert "no-gpu-visible" in shown
    assert "hf_abcdefghijklmnop" not in shown
    assert not any((ord(c) < 32 and c != "\n") or c in "\x9b\u202e\x7f" for c in shown)


def test_the_command(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("RuntimeError: No CUDA GPUs are available\n")
    runner = CliRunner()
    result = runner.invoke(command, [str(log), "--format", "json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["schema"] == "dsdoctor/diagnosis"
    assert document["causes"][0]["condition"] == "no-gpu-visible"
    log.write_text("step 1 loss 2.0\n")
    assert runner.invoke(command, [str(log)]).exit_code == 0
    log.write_text("")
    assert runner.invoke(command, [str(log)]).exit_code == 3
    missing = runner.invoke(command, [str(tmp_path / "none.log")])
    assert missing.exit_code == 2
    assert missing.stderr.count("\n") == 1
    assert runner.invoke(command, ["-"], input=b"KeyError: 'x'\n").exit_code == 0
    assert runner.invoke(command, [str(log), "--expect", "zero9"]).exit_code == 2
