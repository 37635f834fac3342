"""Causes that only the place of an exception tells, where no wording is known."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.frames import frames_of
from dsdoctor.model.diagnosis import Outcome

SIGNATURES = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
HEAD = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in main\n'


def said(text: str) -> str:
    found = diagnose([Source(name="log", data=text.encode())], SIGNATURES)
    return found.causes[0].condition if found.causes else found.outcome.value


def trace(*frames: tuple[str, str], error: str) -> str:
    told = "".join(
        f'  File "{SITE}{file}", line 7, in {name}\n    x = y\n' for file, name in frames
    )
    return f"{HEAD}{told}{error}\n"


ROWS = [
    (("deepspeed/runtime/config.py", "_do_error_check"), "AssertionError: a and b must match",
     "ds-config-unsupported-combination"),
    (("deepspeed/runtime/config_utils.py", "__init__"), "ValueError: bad word `stge`",
     "ds-config-invalid-key"),
    (("deepspeed/runtime/config.py", "_batch_assertion"), "AssertionError: 8 != 2 * 1",
     "ds-config-batch-mismatch"),
    (("deepspeed/runtime/config.py", "f"), "TypeError: no '<' for 'str' and 'int'",
     "ds-config-auto-values"),
    (("deepspeed/runtime/engine.py", "_configure_optimizer"), "AssertionError: odd optimizer",
     "ds-config-unsupported-combination"),
    (("deepspeed/runtime/zero/stage3.py", "step"), "RuntimeError: the trace went astray",
     "ds-config-unsupported-combination"),
    (("deepspeed/runtime/zero/partitioned_param_coordinator.py", "fetch"), "IndexError: empty",
     "ds-config-unsupported-combination"),
    (("accelerate/utils/deepspeed.py", "map_it"), "AttributeError: 'Lamb' has no attribute 'bits'",
     "transformers-deepspeed-incompatible"),
    (("deepspeed/runtime/engine.py", "_load_zero_checkpoint"), "KeyError: 'base_state'",
     "checkpoint-mismatch"),
    (("deepspeed/utils/zero_to_fp32.py", "parse_model_states"), "ValueError: odd folder",
     "checkpoint-mismatch"),
    (("torch/utils/cpp_extension.py", "_check_cuda_version"), "RuntimeError: versions differ",
     "cuda-toolkit-mismatch"),
    (("torch/utils/cpp_extension.py", "_join_cuda_home"), "OSError: no home", "cuda-toolkit-missing"),
    (("torch/utils/cpp_extension.py", "_get_cuda_arch_flags"), "IndexError: out of range",
     "no-gpu-visible"),
    (("deepspeed/launcher/runner.py", "_parse_hostfile"), "ValueError: bad row",
     "hostfile-or-ssh-problem"),
    (("deepspeed/comm/comm.py", "mpi_discovery"), "ValueError: bad answer",
     "launched-without-deepspeed"),
    (("deepspeed/comm/torch.py", "__init__"), "AttributeError: 'torch.x' has no attribute 'y'",
     "deepspeed-torch-incompatible"),
    (("torch/cuda/__init__.py", "_lazy_init"), "RuntimeError: odd state", "cuda-init-driver-state"),
    (("torch/distributed/rendezvous.py", "_create_c10d_store"), "RuntimeError: odd answer",
     "rendezvous-timeout"),
    (("triton/runtime/jit.py", "run"), "AttributeError: no 'constexpr_function'",
     "triton-unusable"),
    (("safetensors/torch.py", "load_file"), "SafetensorError: odd header", "weights-file-corrupt"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "error", "wanted"), ROWS, ids=[row[2] for row in ROWS])
def test_the_place_tells_the_family(place: tuple[str, str], error: str, wanted: str) -> None:
    assert said(trace(place, error=error)) == wanted
    found = diagnose([Source(name="x", data=trace(place, error=error).encode())], SIGNATURES)
    assert found.causes[0].confidence <= 0.35
    assert "no wording is known" in found.causes[0].message


def test_a_call_between_trainer_and_deepspeed() -> None:
    frames = (("transformers/trainer.py", "train"), ("deepspeed/runtime/engine.py", "step"))
    text = trace(*frames, error="TypeError: step() got an unexpected keyword argument 'lr'")
    assert said(text) == "transformers-deepspeed-incompatible"


@pytest.mark.parametrize(
    "error",
    ["AssertionError: ZeRO must be told", "KeyError: 'x'", "ValueError: needs a checkpoint"],
)
def test_the_users_own_files_are_never_judged(error: str) -> None:
    text = f'{HEAD}  File "/home/me/zero/config.py", line 3, in load_checkpoint\nKeyError: 1\n'
    later = trace(("deepspeed/runtime/engine.py", "load_checkpoint"), error=error)
    assert said(text) == "user-code"
    assert said(text + later.replace("Error", "Problem")) == "user-code"


def test_a_signature_beats_the_place() -> None:
    text = trace(
        ("deepspeed/runtime/engine.py", "load_checkpoint"),
        error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    )
    assert said(text) == "gpu-oom"


def test_saving_a_checkpoint_is_no_mismatch() -> None:
    frames = (
        ("deepspeed/runtime/engine.py", "save_checkpoint"),
        ("torch/serialization.py", "save"),
    )
    assert said(trace(*frames, error="KeyError: 'odd'")) == "user-code"


def test_a_traceback_that_breaks_off() -> None:
    cut = trace(("deepspeed/utils/zero_to_fp32.py", "parse_optim_states"), error="")
    assert said(cut.rstrip()) == "checkpoint-mismatch"
    assert said(f"{cut.rstrip()}\nstep 1\nstep 2\nstep 3\nstep 4\n") != "checkpoint-mismatch"


@pytest.mark.parametrize(
    "line",
    [
        '  File "/x/site-packages/deepspeed/a.py", line 7, in f',
        "│ /x/site-packages/deepspeed/a.py:7 in f                │",
        "File /x/site-packages/deepspeed/a.py:7, in f(x)",
        "/x/site-packages/deepspeed/a.py:7: in f",
        '  File "\\x\\site-packages\\deepspeed\\a.py", line 7, in f',
    ],
)
def test_frames_in_every_form(line: str) -> None:
    (frame,) = frames_of([line])
    assert frame == ("/x/site-packages/deepspeed/a.py", "f", 7)


def test_a_symptom_is_read_again_where_lines_are_foreign() -> None:
    text = "x.cpp:1:10: 致命错误：Python.h：没有那个文件或目录\n"
    symptom = "RuntimeError: Error building extension 'cpu_adam'\n"
    assert said(symptom) == "cpu-adam-unbuilt"
    assert said(text + symptom) == "jit-build-python-headers-missing"
    assert said("总线错误 (核心已转储)\n") == "shm-too-small"


def test_a_frame_that_a_terminal_broke() -> None:
    text = (
        f'{HEAD}  File "{SITE}deepspeed/ops/op_builder/builder.py", line 5\n'
        "1, in installed_cuda_version\nWeirdError: odd\n"
    )
    assert said(text) == "cuda-toolkit-missing"
    assert frames_of(text.splitlines())[-1].line == 51


def test_what_the_last_line_calls_counts_where_a_traceback_breaks_off() -> None:
    head = f'{HEAD}  File "{SITE}deepspeed/ops/op_builder/builder.py", line 5, in is_compatible\n'
    assert said(f"{head}    major, _ = installed_cuda_version()\n") == "cuda-toolkit-missing"
    assert said(f"{head}    major, _ = some_version()\n") == "unrecognised"


def test_a_path_that_rich_broke() -> None:
    lines = ["│ /x/site-packages/torch/utils/data/datalo │", "│ ader.py:1371 in _process │"]
    assert frames_of(lines)[0].file == "/x/site-packages/torch/utils/data/dataloader.py"


REWORDED = [
    ("libx.so:%20undefined%20symbol:%20ncclCommRegister", "nccl-version-mismatch"),
    ("OSError: [WinError 126] Das angegebene Modul wurde nicht gefunden: 'C:\\x\\c10.dll'", None),
    ("LINK : fatal error LNK1181: no se puede abrir el archivo “aio.lib”", "unsupported-on-windows"),
    ("error: [Errno 28] Auf dem Ger\u00e4t ist kein Speicherplatz mehr verf\u00fcgbar", "disk-full"),
    ("RuntimeError: CUDA&nbsp;error: no&#32;kernel image is available for execution on the device",
     "gpu-arch-unsupported"),
    (
        (
            "AssertionError: Check batch related parameters. train_batch_size is not equal to\n"
            "micro_batch_per_gpu * gradient_acc_step * world_size 8 != 2 * 1 * 1"
        ),
        "ds-config-batch-mismatch",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), REWORDED)
def test_lines_that_were_changed_on_the_way(text: str, wanted: str | None) -> None:
    got = said(text)
    assert got == wanted if wanted else got != Outcome.CLEAN.value


@pytest.mark.parametrize(
    ("place", "error", "wanted"),
    [
        (
            ("accelerate/utils/deepspeed.py", "map_it"),
            "AttributeError: 'MyModel' object has no attribute 'bits'",
            "user-code",
        ),
        (
            ("torch/distributed/rendezvous.py", "<module>"),
            "ImportError: cannot import name 'Odd'",
            "unrecognised",
        ),
    ],
)
def test_a_like_place_that_tells_nothing(place: tuple[str, str], error: str, wanted: str) -> None:
    assert said(trace(place, error=error)) == wanted
