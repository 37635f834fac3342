"""Failures whose words were taken for something else: imports, launchers, accelerators, Ray."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.10/site-packages/"
OWN = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 1, in <module>\n'


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def named(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


TERMINATED = (
    "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
)
STACK = (
    "Fatal Python error: Aborted\n\nCurrent thread 0x00007f12 (most recent call first):\n"
    '  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed\n'
    '  File "<frozen importlib._bootstrap_external>", line 1176 in create_module\n'
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            f'{OWN}    import torch\n  File "{SITE}torch/__init__.py", line 237, in <module>\n'
            "    from torch._C import *\nMemoryError: std::bad_alloc\n",
            id="torch",
        ),
        pytest.param(
            f'{OWN}    import pyarrow\n  File "{SITE}pyarrow/__init__.py", line 65, in <module>\n'
            "    import pyarrow.lib as _lib\nMemoryError: std::bad_alloc\n",
            id="another extension",
        ),
        pytest.param(TERMINATED + STACK, id="in faulthandler's stack"),
        pytest.param(f">>> import torch\n{TERMINATED}Aborted (core dumped)\n", id="in a session"),
    ],
)
def test_an_allocation_that_fails_in_an_import_is_a_clash_of_libraries(text: str) -> None:
    assert named(text) == "compiled-extension-broken"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{OWN}    trainer.train()\nMemoryError: std::bad_alloc\n", id="raised"),
        pytest.param(TERMINATED, id="terminated"),
        pytest.param(
            f'{OWN}    import torch\n  File "{SITE}torch/__init__.py", line 237, in <module>\n'
            "    x = list(y)\nMemoryError\n",
            id="Python's own in an import",
        ),
    ],
)
def test_an_allocation_that_fails_elsewhere_is_host_memory(text: str) -> None:
    assert named(text) == "host-oom-killed"


def test_the_launcher_of_a_moved_environment_is_not_a_feature_that_windows_does_not_have() -> None:
    assert named("(env) D:\\w>deepspeed train.py\nfailed to create process.\n") == (
        "launcher-interpreter-missing"
    )
    assert named("the daemon failed to create process. trying again\nok\n") == "clean"
    found = read(
        "bash: /data/new/bin/torchrun: /data/old/bin/python3.10: bad interpreter: No such file or "
        "directory\n"
    )
    assert found.causes[0].message == (
        "the first line of the script names `/data/old/bin/python3.10`, which does not exist"
    )
    assert named("bash: ./run.sh: /bin/bash^M: bad interpreter: No such file or directory\n") == (
        "launch-file-missing"
    )
    assert named("/usr/bin/env: 'python3\\r': No such file or directory\n") == "launch-file-missing"


@pytest.mark.parametrize(
    ("code", "condition"),
    [
        ("0xC0000135", "windows-dll-not-loaded"),
        ("0xC0000142", "windows-dll-not-loaded"),
        ("0xC0000139", "windows-dll-not-loaded"),
        ("-1073741701", "windows-dll-not-loaded"),
        ("3221225781", "windows-dll-not-loaded"),
        ("0xC000001D", "native-crash"),
        ("3221225501", "native-crash"),
        ("0xC0000199", "unrecognised"),
        ("0", "clean"),
    ],
)
def test_an_exit_status_of_windows_says_how_the_process_ended(code: str, condition: str) -> None:
    assert named(f"starting\nProcess finished with exit code {code}\n") == condition


NPU = "RuntimeError: x.cpp:274 NPU function error: c10_npu::acl::F(stream), error code is "


@pytest.mark.parametrize(
    ("code", "condition"),
    [
        ("507001", "npu-kernel-failed"),
        ("507011", "npu-kernel-failed"),
        ("507013", "npu-kernel-failed"),
        ("507010", "unrecognised"),
        ("107002", "unrecognised"),
        ("500002", "unrecognised"),
    ],
)
def test_an_error_of_an_npu_is_never_the_scripts(code: str, condition: str) -> None:
    text = (
        f"{OWN}    x.cpu()\n{NPU}{code}\n"
        "[ERROR] 2025-02-20-02:16:03 (PID:1162, Device:0, RankID:0) ERR00100 PTA call acl api "
        "failed\n"
    )
    assert named(text) == condition


@pytest.mark.parametrize(
    "message",
    [
        "oneCCL: global.cpp:150 getenv_local_coord: EXCEPTION: x",
        "MPI_ERR_TRUNCATE: message truncated",
        "synStatus=26 [Generic failure] Synchronization failed.",
        "Native API failed. Native API returns: -1 (x)",
        "MUSA error: invalid argument",
        "CNNL_STATUS_INTERNAL_ERROR",
        "Bad StatusOr access: INTERNAL: RET_CHECK failure",
        "CUSPARSE_STATUS_EXECUTION_FAILED",
        "cuFFT error: CUFFT_INTERNAL_ERROR",
        "miopenStatusUnknownError",
        "Triton Error [HIP]:  Code: 1",
        "could not execute a primitive",
    ],
)
def test_what_a_library_of_an_accelerator_reports_is_never_the_scripts(message: str) -> None:
    assert named(f"{OWN}    x.cpu()\nRuntimeError: {message}\n") == "unrecognised"


def test_words_of_accelerators_in_a_message_of_the_scripts_are_the_scripts() -> None:
    for message in ("CUSTOM_STATUS is not set", "could not create an experiment", "status = 3"):
        assert named(f"{OWN}    check()\nKeyError: {message!r}\n") == "user-code"


def test_what_an_npu_says_more_of_counts_more_than_its_general_code() -> None:
    text = (
        f"{OWN}    x.cpu()\n{NPU}507013\n"
        "EL0004: [PID: 7] 2024-05-21-10:00:00.123.456 Failed to allocate memory.\n"
    )
    assert named(text) == "gpu-oom"
    own = f"{OWN}    rate = options['rate']\nKeyError: 'rate'\n"
    assert named(own + "Warning: NPU warning, error code is 507001[Error]: \n") == "user-code"


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        pytest.param(
            "EJ0001: [PID: 7] 2024-04-14-01:31:16 Failed to initialize the HCCP process.",
            "hccl-error",
            id="HCCL's, behind a code that looks like a node of pdsh",
        ),
        pytest.param(
            "EZ3002: [PID: 7] Optype [Foo] of Ops kernel [AIcoreEngine] is unsupported. Reason: x.",
            "npu-kernel-failed",
            id="an operator without a kernel",
        ),
        pytest.param(
            "Resource_Busy(EL0005): The resources are busy.",
            "accelerator-not-acquired",
            id="a device that is held",
        ),
        pytest.param(
            "EE1001: [PID: 7] 2024-04-14-01:31:16 The argument is invalid.",
            "unrecognised",
            id="another code of CANN's",
        ),
        pytest.param("E19999: Inner Error!", "unrecognised", id="a code of the graph engine's"),
        pytest.param(
            "[1653901933.475958] [n1:5215 :0]   sock.c:325  UCX  ERROR connect(fd=40) failed: x",
            "unrecognised",
            id="UCX",
        ),
        pytest.param(
            "[n1:05215] pml_ucx.c:419  Error: ucp_ep_create(proc=0) failed: Destination is "
            "unreachable",
            "unrecognised",
            id="Open MPI above UCX",
        ),
        pytest.param(
            "[n1:123] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2198",
            "unrecognised",
            id="PMIx",
        ),
        pytest.param(
            "[n1:123] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 168",
            "clean",
            id="PMIx's store, in runs that succeed",
        ),
        pytest.param(
            "[n1:123] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",
            "unrecognised",
            id="Open MPI",
        ),
        pytest.param(
            "2024:01:23-00:02:21:(12) |CCL_ERROR| global.cpp:150 getenv_local_coord: condition x",
            "unrecognised",
            id="oneCCL",
        ),
    ],
)
def test_a_library_that_names_its_error_last_ends_no_healthy_log(line: str, condition: str) -> None:
    assert named(f"building the model\n{line}\n") == condition


RAY = (
    f"{OWN}    ray.get(done)\nray.exceptions.ActorDiedError: The actor died unexpectedly before "
    "finishing this task.\n\tclass_name: Worker\n\tactor_id: 12\n"
)
WORKER = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker "
    "exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are "
    "some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high "
    "memory usage. (2) ray stop --force is called.\n"
)


def test_of_a_worker_of_ray_that_died_no_more_is_said_than_known() -> None:
    found = read(RAY + WORKER)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith("a worker of Ray died (SYSTEM_ERROR), and the log does not")
    line = (
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. "
        "Worker PID: 7 Worker exit type: INTENDED_SYSTEM_EXIT Worker exit detail: x\n"
    )
    assert "(INTENDED_SYSTEM_EXIT)" in read(line).summary


def test_what_ended_a_worker_of_ray_is_the_cause() -> None:
    oom = (
        "(Worker pid=12) Traceback (most recent call last):\n"
        '(Worker pid=12)   File "/home/me/w.py", line 3, in load\n(Worker pid=12)     x()\n'
        "(Worker pid=12) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    )
    assert named(oom + RAY + WORKER) == "gpu-oom"
    gone = "The actor died because its node has died. Node Id: 12\n"
    assert named(RAY + gone) == "node-failed"
    assert named(f"{RAY}{gone}\tthe actor's node was preempted: x\n") == "unrecognised"


@pytest.mark.parametrize(
    ("message", "one", "other"),
    [
        pytest.param(
            f"ImportError: {SITE}nvidia/cublas/lib/libcublas.so.12: undefined symbol: "
            "cublasLtGetEnvironmentMode, version libcublasLt.so.12",
            "libcublas.so.12",
            "libcublasLt.so.12",
            id="a symbol of a version",
        ),
        pytest.param(
            "ImportError: /usr/local/cuda/lib64/libcublasLt.so.12: version `libcublasLt.so.12' not "
            f"found (required by {SITE}nvidia/cublas/lib/libcublas.so.12)",
            "libcublas.so.12",
            "libcublasLt.so.12",
            id="a version",
        ),
        pytest.param(
            "OSError: /x/libcusparse.so.12: symbol __nvJitLinkComplete_12_4, version "
            "libnvJitLink.so.12 not defined in file libnvJitLink.so.12 with link time reference",
            "libcusparse.so.12",
            "libnvJitLink.so.12",
            id="a symbol at link time",
        ),
    ],
)
def test_two_libraries_of_cuda_that_clash_are_both_named(
    message: str, one: str, other: str
) -> None:
    found = read(f"{OWN}    import torch\n{message}\n")
    assert found.causes[0].condition == "cuda-runtime-lib-mismatch"
    assert found.causes[0].message == (
        f"`{one}` and the `{other}` that was loaded are of different releases of CUDA"
    )


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("colossalai.legacy", "dependency-version-conflict"),
        ("deepspeed.moe.experts2", "dependency-version-conflict"),
        ("deepspeed", "deepspeed-missing"),
        ("mylib.core", "user-code"),
    ],
)
def test_a_part_of_a_package_that_is_missing_is_another_release(name: str, condition: str) -> None:
    text = f"{OWN}    from {name} import x\nModuleNotFoundError: No module named '{name}'\n"
    found = read(text)
    assert named(text) == condition
    if condition == "dependency-version-conflict":
        package = name.split(".", maxsplit=1)[0]
        assert f"the installed `{package}` has no module `{name}`" in found.causes[0].message


def test_a_module_that_python_m_does_not_find_is_no_healthy_log() -> None:
    assert named("/usr/bin/python3: No module named deepspeed\n") == "deepspeed-missing"
    assert named("/usr/bin/python3: No module named torch.distributed.launch2\n") == (
        "launch-file-missing"
    )


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        ("train-0   0/1   Evicted   0   15m", "pod-evicted"),
        ("train-0   0/1   Init:StartError   2   4m", "container-not-started"),
        ("      Reason:       ContainerCannotRun", "container-not-started"),
        pytest.param(
            "  Warning  Failed   12s (x3 over 55s)  kubelet  Error: failed to create containerd "
            "task: x",
            "container-not-started",
            id="an event of the kubelet's",
        ),
        pytest.param(
            "NVIDIA Container Runtime: error locating runtime: no runtime binary found from "
            "candidate list: [docker-runc runc crun]",
            "container-not-started",
            id="a runtime that is not installed",
        ),
    ],
)
def test_a_container_that_did_not_start_is_named(line: str, condition: str) -> None:
    assert named(f"NAME      READY   STATUS   RESTARTS   AGE\n{line}\n") == condition


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "Exit code 0xC0000135 of Windows means that a DLL was not found.", id="windows"
        ),
        pytest.param("We saw error code is 507001 on NPUs before, and ERR00100 too.", id="npu"),
        pytest.param("An ActorDiedError says that Worker exit type: is in the text.", id="ray"),
        pytest.param("std:: bad_alloc and MemoryError are described in the guide.", id="memory"),
    ],
)
def test_prose_that_mentions_the_words_is_healthy(text: str) -> None:
    assert named(f"{text}\nstep 1 loss 2.0\nstep 2 loss 1.9\n{{'train_runtime': 3.0}}\n") == "clean"


def test_a_dll_that_windows_could_not_load_is_no_lack_of_support() -> None:
    head = "Platform: Windows-11-10.0.26100\n" + OWN.replace("/home/me", "C:\\me")
    failed = "DLL load failed while importing {0}: Eine DLL-Initialisierung ist fehlgeschlagen.\n"
    assert named(head + "ImportError: " + failed.format("libtriton")) == "windows-dll-not-loaded"
    assert named(head + "ImportError: " + failed.format("_sentencex")) == "windows-dll-not-loaded"
    tried = f"Could not load it ({failed.format('_sentencex').strip()}), using the slow one\n"
    assert named(tried) == "clean"


def test_a_module_of_deepspeed_that_lacks_an_import_is_no_missing_deepspeed() -> None:
    error = "NameError: name 'deepspeed' is not defined\n"
    inside = '  File "/home/me/DeepSpeed/deepspeed/runtime/engine.py", line 9, in refill\n    f()\n'
    assert named(OWN + inside + error) == "unrecognised"
    assert named(OWN + "    deepspeed.initialize()\n" + error) == "deepspeed-missing"
