"""Every provoked log, the rules of order, and input that means harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, diagnose_paths, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.report.diagnosis import render
from tests.support.diagnosing import diagnose_command

FOLDER = Path(__file__).parent / "provoked"
CASES: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
SIGNATURES = signatures_of(packs.load(builtin_only=True))
#: Logs that do not tell what happened well enough; the answer must at least not be a false cause.
HARD: frozenset[str] = frozenset()


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


def test_no_space_in_shared_memory_is_not_the_disk() -> None:
    shm = "RuntimeError: unable to write to file </torch_9_1>: No space left on device (28)\n"
    assert first(shm) == "shm-too-small"
    assert first("OSError: [Errno 28] No space left on device: 'out/a.pt'\n") == "disk-full"


@pytest.mark.parametrize(
    ("row", "condition"),
    [
        ("tmpfs  7.9G   92M  7.8G   2% /dev/shm", "disk-full"),
        ("shm     64M   64M     0 100% /dev/shm", "shm-too-small"),
    ],
    ids=["room there", "full"],
)
def test_a_row_of_df_is_about_shared_memory_only_if_that_is_full(row: str, condition: str) -> None:
    text = f"OSError: [Errno 28] No space left on device\n\n$ df -h\n/dev/sda5 32G 32G 0 100% /\n{row}\n"
    assert first(text) == condition


def test_ds_opt_adam_follows_from_the_build() -> None:
    text = (
        "/usr/bin/ld: cannot find -lcurand\nninja: build stopped: subcommand failed.\n"
        "AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam'\n"
    )
    found = read(text)
    assert found.causes[0].condition == "cuda-toolkit-incomplete"
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


def test_a_message_that_begins_on_the_next_line_is_shown() -> None:
    """As safetensors and multiprocessing word theirs; lines of other ranks may stand between."""
    text = (
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/env/lib/python3.10/site-packages/safetensors/torch.py", line 4, in _flatten\n'
        "[rank0]: RuntimeError: \n"
        "[rank1]: Traceback (most recent call last):\n"
        "[rank0]:             Some tensors share memory, this will lead to duplicate memory\n"
        '[rank1]:   File "/job/a.py", line 7, in main\n'
        "[rank1]: KeyError: 'x'\n"
    )
    found = read(text)
    assert found.summary.endswith(
        "RuntimeError: Some tensors share memory, this will lead to duplicate memory"
    )
    assert found.outcome is Outcome.UNRECOGNISED


def test_the_line_after_an_exception_without_a_message_is_not_its_message() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/job/a.py", line 7, in main\nAssertionError\n'
    )
    assert read(f"{text}[INFO] [launch.py:319] Killing subprocess 1\n").summary.endswith(
        ": AssertionError"
    )


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        pytest.param(
            "torch._dynamo.exc.Unsupported: Attempted to call a skipped function",
            Outcome.UNRECOGNISED,
            id="a product of the stack",
        ),
        pytest.param(
            "filelock._error.Timeout: The file lock '/c/x.lock' could not be acquired.",
            Outcome.UNRECOGNISED,
            id="a lock that another process holds",
        ),
        pytest.param(
            "pyarrow.lib.ArrowInvalid: JSON parse error: Column(/a) changed in row 12",
            Outcome.USER_CODE,
            id="the data of the user",
        ),
        pytest.param(
            "my.project.errors.Budget: spent", Outcome.USER_CODE, id="an exception of the user"
        ),
        pytest.param(
            "see torch._dynamo.exc.Unsupported: it lists more", Outcome.CLEAN, id="a sentence"
        ),
        pytest.param(
            "numpy.exceptions.VisibleDeprecationWarning: soon", Outcome.CLEAN, id="a warning"
        ),
    ],
)
def test_exceptions_without_the_usual_endings(line: str, outcome: Outcome) -> None:
    assert read(f"step 1\n{line}\n").outcome is outcome


def test_a_progress_bar_does_not_hide_the_cause() -> None:
    assert first("10%|#\r20%|##\rRuntimeError: No CUDA GPUs are available\r\n") == "no-gpu-visible"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
            id="async_io without libaio",
        ),
        pytest.param(
            "NCCL INFO NET/Plugin : Could not find : libnccl-net.so", id="NCCL without a plugin"
        ),
        pytest.param(
            "misc/ibvwrap.cu:61 WARN Failed to open libibverbs.so[.1]", id="NCCL without libibverbs"
        ),
        pytest.param(
            "[WARNING] [runner.py:1:fetch_hostfile] Unable to find hostfile, will proceed with training",
            id="no hostfile",
        ),
        pytest.param(
            "[INFO] [loss_scaler.py:1] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536",
            id="a loss scale that is lowered",
        ),
        pytest.param(
            "Warning: Grad strides do not match bucket view strides.", id="strides of gradients"
        ),
        pytest.param(
            "x.py:9: FutureWarning: `torch.cuda.amp.custom_fwd(args...)` is deprecated.",
            id="a deprecated function",
        ),
    ],
)
def test_harmless_lines_are_left_in_peace(line: str) -> None:
    assert read(line + "\nmodel has 124M parameters\n").outcome is Outcome.CLEAN


NOT_LOADED = (
    "Could not find the bitsandbytes CUDA binary at PosixPath('/e/libbitsandbytes_cuda126.so')"
)


@pytest.mark.parametrize(
    ("rest", "outcome"),
    [
        pytest.param("{'loss': 1.31, 'epoch': 0.1}\n", Outcome.CLEAN, id="steps of transformers"),
        pytest.param(
            " 12%|#   | 120/1000 [00:40<04:53,  3.00it/s]\n",
            Outcome.CLEAN,
            id="a progress bar that moves",
        ),
        pytest.param(
            "iteration 10/100 | consumed samples: 80 | lm loss: 8.8E+00\n",
            Outcome.CLEAN,
            id="steps of Megatron",
        ),
        # a run that does not get on, or that dies after all
        pytest.param(
            "  0%|    | 0/1000 [00:00<?, ?it/s]\n", Outcome.CAUSE, id="a progress bar at zero"
        ),
        pytest.param("{'loss': nan, 'epoch': 0.1}\n", Outcome.CAUSE, id="a loss of nan"),
        pytest.param("{'loss': 0.0, 'epoch': 0.1}\n", Outcome.CAUSE, id="a loss of zero"),
        pytest.param(
            "step 3 loss 2.0\n[ERROR] [launch.py:9:x] ['p'] exits with return code = 1\n",
            Outcome.UNRECOGNISED,
            id="the launcher reports a failure",
        ),
        pytest.param(
            "step 3 loss 2.0\nTraceback (most recent call last):\nRuntimeError: x\n",
            Outcome.UNRECOGNISED,
            id="a traceback follows",
        ),
    ],
)
def test_a_run_that_trains_on_was_only_warned(rest: str, outcome: Outcome) -> None:
    assert read(f"{NOT_LOADED}\n{rest}").outcome is outcome


def test_what_stands_below_the_last_step_is_no_warning() -> None:
    assert read(f"step 3 loss 2.0\n{NOT_LOADED}\n").outcome is Outcome.CAUSE


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


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text("RuntimeError: No CUDA GPUs are available\n")
    result = diagnose_command(monkeypatch, log, "--format", "json")
    assert result.status == 1
    assert result.report["schema"] == "dsdoctor/diagnosis"
    assert result.report["causes"][0]["condition"] == "no-gpu-visible"
    log.write_text("step 1 loss 2.0\n")
    assert diagnose_command(monkeypatch, log).status == 0
    log.write_text("")
    assert diagnose_command(monkeypatch, log).status == 3
    assert diagnose_command(monkeypatch, "-", stdin=b"KeyError: 'x'\n").status == 0
    assert diagnose_command(monkeypatch, "-", stdin=b"Killed by a ghost: exitcode: 1\n").status == 3


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("none.log",), "`none.log` does not exist"),
        ((), "LOG"),
        (("a.log", "--expect", "zero9"), "`--expect zero9` is not known; expected zero0, zero1"),
        (("a.log", "--expect", "0gpus"), "`--expect 0gpus` is not known"),
        (("a.log", "--expect", " "), "`--expect` is empty"),
        (("a.log", "--snapshot", "none.json"), "`none.json` cannot be read"),
        (("a.log", "--snapshot", "a.log"), "is not a snapshot"),
        (("a.log", "--snapshot", "a.log", "--here"), "pass one of them"),
        (("a.log", "--python", "python3"), "add `--here`"),
        (("-", "-"), "pass `-` once"),
        (("-", "--snapshot", "-"), "pass `-` once"),
        (("a.log", "-o", "nowhere/x"), "cannot be written"),
        (("empty",), "`empty` contains no logs"),
    ],
)
def test_misuse_is_one_line(
    argv: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("step 1\n")
    (tmp_path / "empty").mkdir()
    result = diagnose_command(monkeypatch, *argv)
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert words in result.err
    assert result.out == ""
