"""What a text says of errors in general, and warnings that a run outlives, are not causes."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.prose import happened
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
TOO_OLD = (
    "/env/lib/python3.12/site-packages/torch/cuda/__init__.py:141: UserWarning: CUDA "
    "initialization: The NVIDIA driver on your system is too old (found version 11040). Please "
    "update your GPU driver. (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)"
)


def diagnosed(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "### Q48: safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
            id="a question as a heading",
        ),
        pytest.param("#### CUDA out of memory", id="an error as a heading"),
        pytest.param(
            "# Ignore 'CUDA_ERROR_NO_DEVICE' as this process does not use a GPU", id="a comment"
        ),
        pytest.param(
            "| `OUT_OF_MEMORY` | state `OUT_OF_MEMORY`, or an `oom-kill` line | raise `--mem` |",
            id="a row of a table",
        ),
        pytest.param(
            "| CUDA_ERROR_OUT_OF_MEMORY | the GPU is full | use a smaller batch |",
            id="a row of a table of errors",
        ),
        pytest.param("**Q: RuntimeError: CUDA out of memory**", id="a question in bold"),
        pytest.param(
            "4.  **问： 训练时报错：`RuntimeError: CUDA error: no kernel image is available`",
            id="a question in Chinese",
        ),
        pytest.param(
            "If you encounter an error like `CUDA error: an illegal memory access`, update the package",
            id="advice for an error like this",
        ),
        pytest.param(
            "When you see `RuntimeError: CUDA out of memory`, use a smaller batch",
            id="advice for when it occurs",
        ),
        pytest.param(
            "如果遇到了报错 `Could not find module 'nvcuda.dll'`，请从本地加载模型",
            id="advice in Chinese",
        ),
        pytest.param(
            "printf 'CUDA out of memory on rank 0\\nNCCL error\\n' >>\"$log_file\"",
            id="a printf of a script",
        ),
        pytest.param(
            "   2210     # if loss is nan or inf simply add the average of previous logged losses",
            id="a comment in numbered code",
        ),
        pytest.param(
            "Currently, the converter is not supported on Windows.", id="what a converter supports"
        ),
        pytest.param(
            "The next biggest issue is running out of disk space.", id="a complaint in prose"
        ),
        pytest.param(
            "there are options that you cannot set from the launcher, and they are 'auto'",
            id="auto in prose",
        ),
        pytest.param("        raise torch.OutOfMemoryError", id="a raise"),
        pytest.param(
            '+        raise RuntimeError("CUDA out of memory on this rank")', id="a raise in a diff"
        ),
        pytest.param("    except torch.OutOfMemoryError:", id="an except clause"),
        pytest.param(
            "Does the error CUDA out of memory. Tried to allocate 2.00 GiB come from a time-out?",
            id="a question in prose",
        ),
        pytest.param(
            "Monitor->>Node: read that a GPU has fallen off the bus", id="an arrow of a diagram"
        ),
    ],
)
def test_a_general_line_is_not_a_cause(line: str) -> None:
    assert diagnosed(f"{line}\n").outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB.",
            id="an exception",
        ),
        pytest.param(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            id="an error of CUDA",
        ),
        pytest.param(
            "# A fatal error has been detected by the Java Runtime Environment:",
            id="a fatal error of Java",
        ),
        pytest.param(
            "|   0  NVIDIA A100-SXM4-80GB          ERR! | 00000000:07:00.0 Off |                  ERR! |",
            id="a row of nvidia-smi",
        ),
        pytest.param(
            "Why do I get RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB?",
            id="a question that quotes an exception",
        ),
        pytest.param(
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***",
            id="a time limit of Slurm",
        ),
    ],
)
def test_output_of_a_run_is_kept(line: str) -> None:
    assert happened(line) == line


def test_an_exception_behind_the_source_that_raised_it_is_kept() -> None:
    line = 'line 7 in f raise RuntimeError("CUDA {what}") RuntimeError: CUDA error: invalid ordinal'
    assert happened(line).endswith("f raise RuntimeError: CUDA error: invalid ordinal")


def test_advice_behind_an_error_does_not_hide_it() -> None:
    line = "RuntimeError: CUDA out of memory. If you get this error, use a smaller batch"
    assert happened(line).startswith("RuntimeError: CUDA out of memory.")


def test_a_warning_does_not_explain_an_error_that_speaks_of_something_else() -> None:
    text = f"""{TOO_OLD}
  return torch._C._cuda_getDeviceCount() > 0
cpu
Traceback (most recent call last):
  File "/home/u/train.py", line 86, in <module>
    solve(model, batch)
  File "/home/u/solvers.py", line 379, in solve
    h = torch.zeros(m + 1, m + 1)
TypeError: can only concatenate str (not "int") to str
"""
    assert diagnosed(text).outcome is Outcome.USER_CODE


def test_a_warning_explains_an_error_that_speaks_of_the_gpu() -> None:
    text = f"""{TOO_OLD}
  return torch._C._cuda_getDeviceCount() > 0
Traceback (most recent call last):
  File "/home/u/train.py", line 12, in <module>
    raise ValueError("this script runs on a GPU only")
ValueError: this script runs on a GPU only
"""
    assert [cause.condition for cause in diagnosed(text).causes] == ["driver-too-old"]


def test_a_plugin_that_is_off_does_not_explain_a_missing_module() -> None:
    text = """0: /env/x/logging.py:115: UserWarning: Failed to import peft plugin due to: \
ImportError("cannot import name 'ParamWrapper' from 'peft.tuners.lora.layer'")
0:   warnings.warn(message)
0: Traceback (most recent call last):
0:   File "/home/u/eval/rouge.py", line 8, in <module>
0:     from mine.eval.utils import load
0: ModuleNotFoundError: No module named 'mine'
srun: error: n1: task 0: Exited with exit code 1
"""
    found = diagnosed(text)
    assert "dependency-version-conflict" not in {cause.condition for cause in found.causes}


def test_a_package_without_gpu_support_is_no_cause_where_nothing_died() -> None:
    text = """loading the model
bitsandbytes.cextension - WARNING - The installed version of bitsandbytes was compiled without GPU \
support. 8-bit optimizers, 8-bit multiplication, and GPU quantization are unavailable.
initial validation loss: 11.7
starting epoch 1/13
"""
    assert diagnosed(text).outcome is Outcome.CLEAN


def test_a_quoted_line_is_whole() -> None:
    said = (
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or"
        " device error."
    )
    last = "Call to ibv_modify_qp failed with error Connection timed out"
    found = diagnosed(
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system error,"
        f" NCCL version 2.27.5\n{said}\nLast error:\n{last}\n"
    )
    assert [line.text for line in found.causes[0].evidence] == [last, said]
