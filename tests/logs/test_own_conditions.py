"""Conditions that an exception states by its kind, and exceptions of the same kind that do not."""

from __future__ import annotations

import pytest

from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.packs import load

KNOWN = signatures_of(load(builtin_only=True))
HEAD = "Traceback (most recent call last):\n"
OWN = '  File "/home/me/train.py", line 9, in main\n    run()\n'
SITE = "/e/lib/python3.11/site-packages"


def read(text: str) -> Diagnosis:
    return diagnose([Source("a.log", data=text.encode())], KNOWN)


def named(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


def frame(file: str, function: str) -> str:
    return f'  File "{file}", line 7, in {function}\n    call()\n'


def gone(path: str) -> str:
    return f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD + OWN + gone("/data/x.json"), id="the script opens it"),
        pytest.param(
            HEAD + OWN + frame(f"{SITE}/torch/serialization.py", "__init__") + gone("w/best.pt"),
            id="torch loads it",
        ),
        pytest.param(
            HEAD + OWN + frame(f"{SITE}/audioread/rawread.py", "__init__") + gone("/d/7.wav"),
            id="another package reads it",
        ),
        pytest.param(
            HEAD + OWN + frame(f"{SITE}/h5py/_hl/files.py", "make_fid")
            + "FileNotFoundError: [Errno 2] Unable to synchronously open file (unable to open file:"
            " name = '/d/x.h5', errno = 2, error message = 'No such file or directory')\n",
            id="h5py reads it",
        ),
        pytest.param(
            HEAD + OWN + frame(f"{SITE}/soundfile.py", "_open")
            + "soundfile.LibsndfileError: Error opening '/d/7.wav': System error.\n\n"
            "During handling of the above exception, another exception occurred:\n\n"
            + HEAD + OWN + frame(f"{SITE}/audioread/rawread.py", "__init__") + gone("/d/7.wav"),
            id="a second reader says it",
        ),
        pytest.param(HEAD + OWN + "FileNotFoundError: no shards below /d\n", id="in its own words"),
        pytest.param(
            "Cannot find primary config 'base'. Check that it's in your config search path.\n",
            id="Hydra's config",
        ),
        pytest.param(
            HEAD + OWN + "Exception: Dataset not found.\n"
            "WARNING: Dataset not found, nonexistent paths: ['/data/val']\n", id="YOLO's dataset",
        ),
    ],
)  # fmt: skip
def test_a_path_that_does_not_exist(text: str) -> None:
    assert named(text) == "path-missing"


def test_the_path_is_named() -> None:
    assert read(HEAD + OWN + gone("/data/x.json")).summary == "`/data/x.json` does not exist"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            HEAD + OWN + frame("/usr/lib/python3.11/shutil.py", "rmtree") + gone("/out/step15"),
            id="another rank removed it",
        ),
        pytest.param(
            HEAD + OWN + frame("/usr/lib/python3.11/pathlib.py", "unlink") + gone("/out/a.lock2"),
            id="another rank was faster",
        ),
        pytest.param(
            HEAD + OWN + f"{gone('/out/tmp-step5')[:-1]} -> '/out/step5'\n", id="a rename",
        ),
        pytest.param(
            HEAD + OWN + frame("/usr/lib/python3.11/subprocess.py", "_execute_child")
            + gone("ffmpeg"), id="a program",
        ),
        pytest.param(HEAD + OWN + gone("ffmpeg"), id="perhaps a program"),
        pytest.param(HEAD + OWN + gone("/dev/shm/torch_12_34"), id="shared memory of a peer"),
        pytest.param(HEAD + OWN + gone("/tmp/pymp-x7/listener-q"), id="a socket of a peer"),
        pytest.param(
            HEAD + frame(f"{SITE}/x/a.py", "f") + gone(f"{SITE}/x/kernels/a.cu"),
            id="a file of a package",
        ),
    ],
)  # fmt: skip
def test_other_files_that_are_missing(text: str) -> None:
    assert named(text) != "path-missing"


def test_the_script_that_python_does_not_find() -> None:
    said = "python: can't open file '/w/tran.py': [Errno 2] No such file or directory\n"
    assert named(said) == "launch-file-missing"
    assert read(said).summary == "the script `/w/tran.py` does not exist"


def test_an_argument_that_is_refused_is_quoted() -> None:
    said = "usage: t.py [-h]\nthe trainer: error: argument --lr: expected one argument\n"
    assert named(said) == "script-option-refused"
    assert read(said).summary.endswith("argument --lr: expected one argument")
    unused = "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--x']\n"
    assert named(HEAD + OWN + unused) == "script-option-refused"
    assert named(HEAD + OWN + "ValueError: argument of the loss is empty\n") == "user-code"


def test_an_index_that_a_cpu_refused_is_no_failed_kernel() -> None:
    assert named(HEAD + OWN + "IndexError: index out of range in self\n") == "user-code"
    asserted = "RuntimeError: CUDA error: device-side assert triggered\n"
    assert named(HEAD + OWN + asserted) == "cuda-kernel-failed"


def test_a_relative_import_in_a_cell() -> None:
    said = "ImportError: attempted relative import {}\n"
    cell = HEAD + "Cell In[3], line 1\n----> 1 from ..net import Net\n\n"
    assert named(cell + said.format("with no known parent package")) == "relative-import-in-script"
    assert named(HEAD + OWN + said.format("beyond top-level package")) == "user-code"


@pytest.mark.parametrize(
    ("number", "wanted"), [(15, "launcher-killed"), (9, "unrecognised"), (1, "terminal-closed")]
)
def test_a_signal_that_ended_torchrun(number: int, wanted: str) -> None:
    agent = frame(f"{SITE}/torch/distributed/elastic/agent/server/api.py", "run")
    said = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: "
    assert named(f"{HEAD}{agent}{said}{number}\n") == wanted


def test_a_file_that_is_not_open_is_the_scripts() -> None:
    closed = "OSError: [Errno 9] Bad file descriptor\n"
    assert named(HEAD + OWN + closed) == "user-code"
    inside = HEAD + OWN + frame(f"{SITE}/deepspeed/ops/aio.py", "read")
    assert named(inside + closed) != "user-code"
    assert named(HEAD + OWN + "OSError: [Errno 99] Cannot assign\n") != "user-code"


def test_what_a_collator_passes_to_torch_is_the_scripts() -> None:
    said = "TypeError: expected Tensor as element 0 in argument 0, but got list\n"
    padded = frame(f"{SITE}/torch/nn/utils/rnn.py", "pad_sequence")
    assert named(HEAD + OWN + padded + said) == "user-code"
    other = frame(f"{SITE}/torch/nn/utils/parametrize.py", "forward")
    assert named(HEAD + OWN + other + said) != "user-code"


def test_a_launcher_that_sigkill_ended_is_no_rank_that_memory_ended() -> None:
    shell = "run.sh: line 9: 40811 Killed                  {} t.py\n"
    assert named("step 1 loss 2\n" + shell.format("deepspeed --num_gpus 8")) == "launcher-killed"
    assert named("step 1 loss 2\n" + shell.format("python -u")) == "host-oom-killed"


def test_ctrl_c_that_was_written_over_a_bar() -> None:
    bar = "Epoch 3 | 1/3 [00:00<00:01,  1.15it/s]\n"
    end = 'KeyboardInterruptine.run_backward(  # py", line 266 | 0/3 [00:00<?, ?it/s]0:00, 1it/s]\n'
    assert named(bar + end) == "interrupted-by-user"
    assert named(bar + end.replace("Interrupt", "Map")) == "clean"


def test_a_structure_of_numpy_that_only_grew_is_no_failure() -> None:
    said = "numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88\n"
    assert named(f"/x/_bootstrap.py:222: RuntimeWarning: {said}training\n") == "clean"
    assert named(HEAD + OWN + f"ValueError: {said}") == "numpy-abi-2"


def test_what_the_models_of_torchvision_are_passed_is_the_scripts() -> None:
    said = (
        "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[2, 1, 512, 512] to"
        " have 3 channels, but got 1 channels instead\n"
    )
    layers = frame(f"{SITE}/torchvision/models/resnet.py", "_forward_impl") + frame(
        f"{SITE}/torch/nn/modules/conv.py", "_conv_forward"
    )
    assert named(HEAD + OWN + layers + said) == "user-code"
    other = layers.replace("torchvision/models", "torchvision/ops")
    assert named(HEAD + OWN + other + said) != "user-code"


def test_a_gpu_program_of_cublas_that_failed() -> None:
    said = "RuntimeError: cublas runtime error : {} at /x/aten/src/THC/THCBlas.cu:258\n"
    failed = HEAD + OWN + said.format("the GPU program failed to execute")
    assert named(failed) == "cuda-kernel-failed"


def test_a_docker_without_gpus_started_nothing() -> None:
    said = "unknown flag: --gpus\nSee 'docker run --help'.\nmake: *** [train] Error 125\n"
    assert named(said) == "container-not-started"


def test_a_plugin_that_comfyui_leaves_out() -> None:
    failed = HEAD + OWN + "ModuleNotFoundError: No module named 'insightface'\n"
    left_out = (
        "\nCannot import /c/custom_nodes/reactor module for custom nodes: No module named 'x'\n"
    )
    port = "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8188): address already in use\n"
    assert named(failed + left_out + HEAD + OWN + port) == "port-in-use"
    later = HEAD + OWN + "KeyError: 'labels'\n"
    assert [one.type for one in (read(failed + left_out + later).first_error,) if one] == [
        "KeyError"
    ]
    assert named(failed + later) == "script-module-missing"


def test_a_prompt_that_comfyui_ran_after_one_that_failed() -> None:
    node = frame("/c/ComfyUI/execution.py", "get_output_data")
    failed = (
        "got prompt\n" + HEAD + node + frame("/c/ComfyUI/nodes.py", "load_image") + gone("/c/a.png")
    )
    ended = "\nPrompt executed in 3.80 seconds\n"
    loading = "".join(f"Requested to load part {n}\nLoading 1 new model\n" for n in range(9))
    assert named(failed + ended) == "path-missing"
    assert named(failed + ended + "got prompt\n" + loading + ended) == "clean"
    assert named(failed.replace("execution.py", "loading.py") + ended + loading + ended) != "clean"


def test_python_that_did_not_find_the_script_before_it_was_started_again() -> None:
    missing = "python: can't open file 'train_scrip.py': [Errno 2] No such file or directory\n"
    later = HEAD + '  File "/home/me/train_script.py", line 3, in <module>\n    x\nKeyError: 3\n'
    assert named(missing) == "launch-file-missing"
    assert named(missing + later) == "user-code"


def test_dpo_that_learns_from_nan() -> None:
    step = "{{'loss': 0.69, 'rewards/chosen': {0}, 'logps/chosen': {0}, 'epoch': 0.1}}\n"
    assert named(step.format("nan") * 3 + "Killing subprocess 7\n") == "training-diverged"
    assert named(step.format("-3.1") * 3) == "clean"


CANCELLED = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-02-16T15:36:51 ***\n"
NO_MODULE = """\
Traceback (most recent call last):
  File "/home/me/gym_env/train.py", line 28, in <module>
    from gym_env.rollout import Helper
ModuleNotFoundError: No module named 'gym_env'
"""
REPORTED = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-02-16_15:36:38
  host      : n1
  rank      : 0 (local_rank: 0)
  exitcode  : CODE (pid: 42)
  error_file: <N/A>
============================================================
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(NO_MODULE + REPORTED.replace("CODE", "1") + CANCELLED, "user-code", id="after"),
        pytest.param(CANCELLED + NO_MODULE + REPORTED.replace("CODE", "1"), "job-cancelled",
                     id="before"),
        pytest.param(NO_MODULE + REPORTED.replace("CODE", "-15") + CANCELLED, "job-cancelled",
                     id="a-signal"),
    ],
)  # fmt: skip
def test_a_job_that_slurm_ends_after_its_script_has_failed(text: str, wanted: str) -> None:
    assert named(text) == wanted


def test_what_tyro_rejects() -> None:
    text = (
        "[rank0]:╭─ Unrecognized options ─────────╮\n[rank0]:│ Unrecognized options: false    │\n"
    )
    assert named(text) == "script-option-refused"


def test_a_script_that_python_2_reads() -> None:
    text = (
        "  File \"t.py\", line 230\nSyntaxError: Non-ASCII character '\\xe4' in file t.py on line 230,"
        " but no encoding declared; see http://python.org/dev/peps/pep-0263/ for details\n"
    )
    assert named(text) == "script-syntax-error"
