"""What native code, servers and reporters say of an end, with what resembles it."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
STEPS = "".join(f"step {n} loss 2.{n}\n" for n in range(5))
ABORT = "terminate called after throwing an instance of 'c10::Error'\n"


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="train.log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = read(text)
    return found.causes[0].condition if found.outcome is Outcome.CAUSE else found.outcome.value


GGML = (
    " ROCm error: unspecified launch failure\n  current device: 0, in function copy at /s/x.cu:9\n"
)
THREADS = "".join(f"[New LWP {n}]\n" for n in range(40))
CALLS = "".join(f"#{n}  0x00007f00000000{n:02x} in call_{n} () from /s/libx.so\n" for n in range(9))


def test_the_calls_that_a_debugger_prints_are_those_of_the_process_that_died() -> None:
    assert said(f"{GGML}{THREADS}{CALLS}[Inferior 1 (process 7) detached]\n") == "hip-runtime-error"


def test_output_that_goes_on_is_no_stack() -> None:
    rows = "".join(f"sample {n} is answered\n" for n in range(60))
    assert said(f"{GGML}{rows}") == "clean"


def test_a_log_that_ends_with_calls_of_native_code_is_not_clean() -> None:
    assert said(f"loading\n{CALLS}") == "unrecognised"


@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        pytest.param("  what():  parallel_for failed: out of memory", "gpu-oom", id="thrust"),
        pytest.param("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMalloc(p, n): out of memory"
                     " (/s/buffers.h:9)", "gpu-oom", id="TensorRT-LLM"),
        pytest.param("[12:00:01] [error] [pool.cpp:55] cudaMallocAsync failed: out of memory",
                     "gpu-oom", id="the logger of a C++ program"),
        pytest.param(" ROCm error: out of memory", "gpu-oom", id="ggml on an AMD GPU"),
        pytest.param("[TensorRT-LLM][ERROR] CUDA runtime error in cudaGetLastError(): misaligned "
                     "address (/s/x.cpp:9)", "cuda-kernel-failed", id="a kernel of TensorRT-LLM"),
        pytest.param("[TensorRT-LLM][ERROR] Assertion failed: world size is wrong (/s/x.cpp:9)",
                     "unrecognised", id="a check of TensorRT-LLM"),
        pytest.param("[TRT-LLM] [E] Failed to build the engine.", "unrecognised",
                     id="TensorRT-LLM's Python code"),
        pytest.param("[TensorRT-LLM][WARNING] the GPU may run out of memory", "clean",
                     id="a warning of TensorRT-LLM"),
        pytest.param("[info] cudaMalloc pool was emptied before it is out of memory", "clean",
                     id="a pool that did not fail"),
    ],
)  # fmt: skip
def test_what_loggers_of_native_programs_say_last(line: str, outcome: str) -> None:
    assert said(f"{STEPS}{line}\n") == outcome


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(f"{ABORT}  what():  CUDA error: device-side assert triggered\n",
                     id="an exception that no Python code caught"),
        pytest.param(
            "Traceback (most recent call last):\n"
            '  File "/home/u/train.py", line 9, in <module>\n    loss.item()\n'
            f"torch.AcceleratorError: CUDA error: device-side assert triggered\n{ABORT}"
            "  what():  CUDA error: device-side assert triggered\n", id="one above the abort",
        ),
    ],
)  # fmt: skip
def test_an_assertion_of_a_kernel_is_the_data_and_the_abort_follows_it(lines: str) -> None:
    assert said(f"{STEPS}{lines}Aborted (core dumped)\n") == "cuda-kernel-failed"


def test_another_error_of_the_accelerator_is_not_the_data() -> None:
    text = (
        f"{STEPS}{ABORT}  what():  CUDA error: unspecified launch failure\nAborted (core dumped)\n"
    )
    assert said(text) == "cuda-kernel-failed"


def test_a_check_that_names_the_status_of_cuda_is_not_the_scripts() -> None:
    frames = f'  File "/home/u/serve.py", line 9, in run\n  File "{SITE}flashx/prefill.py", line 3, in f\n'
    text = f"Traceback (most recent call last):\n{frames}ValueError: Check failed: (status == "
    assert said(f"{text}cudaSuccess) is false: prefill failed with error invalid argument\n") == (
        "unrecognised"
    )
    assert said(f"{text}expected) is false\n") == "user-code"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("'/home/u/train.py\r': [Errno 2] No such file or directory", "train.py",
                     id="as the program writes it"),
        pytest.param("", "carriage return", id="as a terminal shows it"),
    ],
)  # fmt: skip
def test_a_name_with_a_carriage_return_is_told_from_a_missing_file(name: str, found: str) -> None:
    shown = "': [Errno 2] No such file or directorython3: can't open file '"
    diagnosis = read(f"python3: can't open file {name}\n" if name else f"{shown}\n")
    assert [cause.condition for cause in diagnosis.causes] == ["launch-file-missing"]
    assert found in diagnosis.causes[0].message
    assert "dos2unix" in diagnosis.causes[0].hint


HALF = "partially initialized module 'torch'"
CIRCULAR = "(most likely due to a circular import)"


@pytest.mark.parametrize(
    ("frame", "exception", "outcome"),
    [
        pytest.param("/home/u/torch.py", f"AttributeError: {HALF} has no attribute 'ones' {CIRCULAR}",
                     "module-shadowed-by-cwd", id="a file imports itself"),
        pytest.param("/home/u/torch.py", f"ImportError: cannot import name 'nn' from {HALF} {CIRCULAR}"
                     " (/home/u/torch.py)", "module-shadowed-by-cwd", id="a name from itself"),
        pytest.param("/home/u/torch.py", "AttributeError: module 'torch' has no attribute 'ones' "
                     "(consider renaming '/home/u/torch.py' if it has the same name as a library "
                     "you intended to import)", "module-shadowed-by-cwd", id="Python 3.13 says so"),
        pytest.param(f"{SITE}torch/__init__.py", f"ImportError: cannot import name 'x' from {HALF} "
                     f"{CIRCULAR} ({SITE}torch/__init__.py)", "unrecognised", id="the package itself"),
        pytest.param("/home/u/model.py", "AttributeError: module 'model' has no attribute 'x' (consider"
                     " renaming '/home/u/model.py' if it has the same name as a library you intended "
                     "to import)", "user-code", id="a module of the script's own"),
        pytest.param(f"{SITE}safetensors/torch.py", f"AttributeError: {HALF} has no attribute 'ones' "
                     f"{CIRCULAR}", "dependency-version-conflict", id="an installed module of that name"),
    ],
)  # fmt: skip
def test_a_file_that_is_imported_instead_of_a_package(
    frame: str, exception: str, outcome: str
) -> None:
    head = 'Traceback (most recent call last):\n  File "/home/u/train.py", line 1, in <module>\n'
    assert said(f'{head}  File "{frame}", line 2, in <module>\n    x\n{exception}\n') == outcome


CHDIR = "slurmstepd: error: couldn't chdir to `/home/u/x': No such file or directory: going to /tmp instead\n"


def test_a_line_that_each_node_prints_first_begins_one_run() -> None:
    once = f"{CHDIR}loading data\nbuilding the model\nstarting\nfirst batch\n"
    assert read(f"{CHDIR}{once}").attempts == ()
    assert len(read(f"{CHDIR}{once}{OOM}{CHDIR}{once}{OOM}").attempts) == 2


OOM = (
    'Traceback (most recent call last):\n  File "/home/u/train.py", line 9, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param("# Training stops after one epoch, the node crashes\n\nRTX 4090\ntorch 2.4\n"
                     "CUDA 12.4\nI use the script.\n", "unrecognised", id="a title"),
        pytest.param("# 多机训练报错\n\n两台机器, 每台八张卡, 启动之后没有任何输出, 环境和文档里的一样\n", "unrecognised",
                     id="a title in Chinese"),
        pytest.param("# Memory of stage 2\n\nI find that these four cards can't run it at all with the default settings.\n",
                     "unrecognised", id="a contraction"),
        pytest.param("# Run the example\n\nMy loss became inf in the second epoch of this setup.\n",
                     "unrecognised", id="a loss"),
        pytest.param("# Which settings do you recommend?\n\nI have eight GPUs and want to train.\n",
                     "clean", id="a question"),
        pytest.param("# [Bug] python train.py returned non-zero exit status 3221225477.\n\n"
                     "12:00:00 INFO  Start training ...\n", "native-crash", id="a title with a status"),
    ],
)  # fmt: skip
def test_an_issue_that_tells_of_a_failure_is_not_clean(text: str, outcome: str) -> None:
    assert said(text) == outcome


def test_the_operator_of_a_cluster_says_that_a_pod_failed() -> None:
    line = 'time="2024-02-21T09:32:29Z" level=info msg="Pod: jobs.worker-0 exited with code {}"\n'
    more = 'time="2024-02-21T09:32:29Z" level=info msg="Reconciling for job pytorch-simple"\n'
    assert said(f"# Run the example\n\n```\n{line.format(1)}{more}```\n") == "unrecognised"
    assert said(f"# Run the example\n\n```\n{line.format(0)}{more}```\n") == "clean"


def test_code_that_triton_compiled_for_this_gpu_is_too_new_for_the_driver() -> None:
    image = "device kernel image is invalid"
    assert said(f"{STEPS}RuntimeError: Triton Error [CUDA]: {image}\n") == "driver-too-old"
    assert said(f"{STEPS}RuntimeError: CUDA error: {image}\n") == "gpu-arch-unsupported"


def test_a_script_that_a_launcher_started_lacks_no_launcher() -> None:
    error = "RuntimeError: Default process group has not been initialized, please make sure to call init_process_group.\n"
    assert said(error) == "launched-without-deepspeed"
    command = "$ python -m torch.distributed.launch --nproc_per_node=2 train.py\n"
    assert said(f"{command}{error}") == "unrecognised"


ASKED = "(APIServer pid=1) INFO 08-21 10:24:34 [launcher.py:100] [shutdown] API server: {}\n"
GONE = (
    "ERROR 08-21 10:24:34 [async_llm.py:704] AsyncLLM output_handler failed.\n"
    "Traceback (most recent call last):\n"
    f'  File "{SITE}vllm/v1/engine/core_client.py", line 1061, in get_output_async\n'
    "    raise self._format_exception(outputs) from None\n"
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace"
    " (above) for the root cause.\n"
)


def test_an_engine_that_is_gone_after_a_signal_is_no_failure() -> None:
    assert said(f"{ASKED.format('shutdown triggered')}{GONE}INFO:     Shutting down\n") == "clean"


def test_an_engine_that_is_gone_before_the_server_stops_is_a_failure() -> None:
    stop = ASKED.format("shutdown triggered")
    assert said(f"{GONE}{stop}INFO:     Shutting down\n") == "unrecognised"
    assert said(f"{GONE}INFO:     Shutting down\n") == "unrecognised"


def test_another_error_while_a_server_stops_is_a_failure() -> None:
    stop = ASKED.format("shutdown triggered")
    assert said(stop + GONE.replace("EngineDeadError", "EngineGenerateError")) == "unrecognised"


COMPILED = (
    "Traceback (most recent call last):\n"
    f'  File "{SITE}triton/backends/nvidia/compiler.py", line 341, in make_llir\n'
    "    pm.run(mod)\n"
)
FAILED = f"{COMPILED}RuntimeError: PassManager::run failed\n"
PIPELINE = (
    '      pipeline: "builtin.module(convert-scf-to-cf, convert-triton-gpu-to-llvm'
    '{{compute-capability={} ptx-version=84}}, cse)",\n'
)


def test_triton_fails_for_a_gpu_that_it_does_not_support() -> None:
    kernel = "".join(f"tmp{n} = tl.load(in_ptr{n})\n" for n in range(300))  # of torch.compile
    assert said(f"{PIPELINE.format(75)}{kernel}{FAILED}") == "gpu-arch-unsupported"
    assert said(f"{PIPELINE.format(70)}{FAILED}") == "gpu-arch-unsupported"


def test_triton_fails_for_a_gpu_that_it_supports() -> None:
    assert said(f"{PIPELINE.format(90)}{FAILED}") == "unrecognised"
    assert said(f"{PIPELINE.format(120)}{FAILED}") == "unrecognised"
    assert said(FAILED) == "unrecognised"


def test_a_number_format_is_missing_in_tritons_table() -> None:
    assert said(f"{COMPILED}IndexError: map::at\n") == "gpu-arch-unsupported"


def test_a_key_is_missing_in_the_map_of_another_library() -> None:
    frames = (
        f'Traceback (most recent call last):\n  File "{SITE}gtsam/__init__.py", line 9, in at\n'
    )
    assert said(f"{frames}    return values.at(key)\nIndexError: map::at\n") == "unrecognised"


NPU = (
    "RuntimeError: SetPrecisionMode:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:175 NPU function"
    " error: at_npu::native::AclSetCompileopt(aclCompileOpt::ACL_PRECISION_MODE, precision_mode),"
    " error code is 500001\n"
)


def test_what_cann_misses_is_named() -> None:
    found = read(
        f"{NPU}EC0010: [PID: 9] Failed to import Python module [ModuleNotFoundError: No module named"
        " 'decorator'.].\n"
    )
    assert found.causes[0].condition == "npu-kernel-failed"
    assert "decorator" in found.summary
    assert said(NPU) == "npu-kernel-failed"


def test_another_compiler_that_cannot_import_a_module() -> None:
    assert said("W0010: Failed to import Python module [x]\nall is done\n") == "clean"


ELASTIC = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: {}) local_rank: 7"


def test_a_title_quotes_what_torchrun_says_of_a_signal() -> None:
    told = "\n\nI train yolox with eight GPUs. It always stops after two epochs.\n"
    assert said(f"# {ELASTIC.format(-9)} (pid: 21) of binary:{told}") == "host-oom-killed"
    assert said(f"# What does {ELASTIC.format(-9)} mean?{told}") != "host-oom-killed"
    assert said(f"# {ELASTIC.format(1)} (pid: 21) of binary:{told}") == "unrecognised"


OLD = (
    f"{SITE}torch/cuda/__init__.py:104: UserWarning: \n"
    "NVIDIA A10 with CUDA capability sm_86 is not compatible with the current PyTorch installation.\n"
)


def test_a_log_goes_on_though_rows_of_its_end_are_samples() -> None:
    rows = "".join(
        f"After {n} steps, Global Step: {n}\n\nTrain Metrics so far: {{'accuracy': 0.{n}}}\n\n"
        for n in range(1, 80)
    )
    end = "Train Metrics: {'loss': 0.0958, 'accuracy': 0.9395}\nEval Metrics: {'loss': None}\n"
    assert said(f"{OLD}{rows}{end}") == "clean"
    assert said(f"{OLD}Converting model to device: cuda\n") == "gpu-arch-unsupported"


def test_tensorflow_goes_on_without_cudnn() -> None:
    missing = "cannot open shared object file: No such file or directory"
    text = (
        "2024-05-01 02:23:58.971304: W tensorflow/stream_executor/platform/default/dso_loader.cc:64]"
        f" Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: {missing}\n"
        "Skipping registering GPU devices...\n1/1 [====] - 0s 201ms/step\n"
    )
    assert said(text) == "clean"
    assert said(f"Traceback:\nImportError: libcudnn_ops.so.9: {missing}\n") == "cudnn-mismatch"


def test_a_list_of_symbols_is_no_failure() -> None:
    symbols = "_Unwind_DeleteException\nstd::bad_alloc\nSt9bad_alloc\nstd::bad_array_length\n"
    done = "Executing transaction: ...working... done\n"
    assert said(f"{symbols}{done}") == "clean"
    words = "terminate called without an active exception\n"
    assert said(f"{symbols}{words}{done}") == "unrecognised"
    assert said("what():  std::bad_alloc\nAborted (core dumped)\n") == "host-oom-killed"


def test_a_training_that_ended_well_in_chinese() -> None:
    lost = (
        "[rank7]:[E814 01:57:12.98 ProcessGroupNCCL.cpp:542] [Rank 7] Collective WorkNCCL(SeqNum=19,"
        " OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) raised the following async"
        " exception: NCCL error: unhandled system error, NCCL version 2.21.5\n"
    )
    assert said(f"{STEPS}{lost}训练结束 | 2000 步 | 386.4 min\n====\n") == "clean"
    assert said(f"{STEPS}{lost}训练结束后保存\n") != "clean"


def test_all_output_of_a_server_is_logged_as_an_error() -> None:
    head = "2024-07-30 17:02:28 | ERROR | stderr | "
    assert said(f"{head}INFO:     Uvicorn running on http://0.0.0.0:10000\n") == "clean"
    raised = "Traceback (most recent call last):", '  File "x.py", line 1', "KeyError: 'x'"
    assert said("".join(f"{head}{line}\n" for line in raised)) == "user-code"


SERVED = "INFO:     Started server process [7]\nINFO:     Application startup complete.\n"
MISSING = 'Traceback:\n  File "/code/api.py", line 12, in <module>\n    import pysolr\n'
MISSING += "ModuleNotFoundError: No module named 'pysolr'\n"


def test_a_server_that_starts_after_the_failure_has_outlived_it() -> None:
    assert said(f"{MISSING}{SERVED}") == "clean"
    assert said(f"{SERVED}{MISSING}") == "script-module-missing"
    assert said(f"{MISSING}INFO:     Started server process [7]\n") == "script-module-missing"


@pytest.mark.parametrize(
    ("starts", "is_ready"),
    [
        (" * Serving Flask app 'api'\n", " * Running on http://127.0.0.1:8000\n"),
        ("[INFO] Starting gunicorn 23.0.0\n", "[INFO] Listening at: http://127.0.0.1:8000\n"),
        ("", "Running on local URL:  http://127.0.0.1:7860\n"),
    ],
    ids=["Flask", "gunicorn", "Gradio"],
)
def test_other_servers_that_start_after_the_failure(starts: str, is_ready: str) -> None:
    assert said(f"{starts}{MISSING}{starts}{is_ready}") == "clean"
    assert said(f"{starts}{is_ready}{MISSING}") == "script-module-missing"
    assert said(f"{starts}{MISSING}{starts}") == "script-module-missing"


def test_a_table_does_not_fit_into_host_memory() -> None:
    error = "pandas.errors.ParserError: Error tokenizing data. C error: "
    assert said(f"{error}out of memory\n") == "host-oom-killed"
    assert said(f"{error}Expected 7 fields in line 3, saw 9\n") != "host-oom-killed"


def test_numba_was_built_for_an_older_numpy() -> None:
    text = "SystemError: initialization of _internal failed without raising an exception\n"
    frames = f'Traceback:\n  File "{SITE}numba/np/ufunc/decorators.py", line 3, in <module>\n'
    assert said(frames + text) == "dependency-version-conflict"
    assert said(frames.replace("numba", "other") + text) != "dependency-version-conflict"
