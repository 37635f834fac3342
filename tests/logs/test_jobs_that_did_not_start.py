"""Jobs that end before their first line of Python: schedulers, modules, containers, MPI, Ray."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis

KNOWN = signatures_of(packs.load(builtin_only=True))
UNKNOWN_MODULE = "ERROR: Unable to locate a modulefile for 'cuda/12.4'\n"
NO_ENVIRONMENT = "EnvironmentNameNotFound: Could not find conda environment: train\n"
NO_LAUNCHER = "/var/spool/slurmd/job412/slurm_script: line 14: torchrun: command not found\n"
OWN = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in <module>\n'
    "    rate = options['rate']\nKeyError: 'rate'\n"
)
NO_TORCH = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 1, in <module>\n'
    "    import torch\nModuleNotFoundError: No module named 'torch'\n"
)
PROGRESS = "".join(f"{{'loss': {3 - n / 10}, 'epoch': {n / 10}}}\n" for n in range(1, 6))
PYXIS = "slurmstepd: error: pyxis: "


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            "srun: error: slurm_receive_msgs: [[n1.lab]:6818] failed: Socket timed out on "
            "send/recv operation\n"
            "srun: error: Task launch for StepId=96.0 failed on node n2: No such process\n"
            "srun: error: Application launch failed: Socket timed out on send/recv operation\n"
            "srun: Job step aborted\n",
            "slurm-step-not-started",
            id="a node that does not start its tasks",
        ),
        pytest.param(
            "slurmstepd: error: Could not open stdout file /home/me/logs/1.out: No such file or "
            "directory\nslurmstepd: error: IO setup failed: No such file or directory\n",
            "path-missing",
            id="a folder for the output that nobody made",
        ),
        pytest.param(
            "slurmstepd: error: execve(): /home/me/run.sh: Permission denied\n"
            "srun: error: n1: task 0: Exited with exit code 13\n",
            "launch-file-missing",
            id="a script without the right to be executed",
        ),
        pytest.param(
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
            "(connect failure)\n",
            "slurm-controller-unreachable",
            id="a controller that is down",
        ),
        pytest.param(
            "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 412\n"
            "srun: error: Unable to confirm allocation for job 412: Invalid job id specified\n",
            "slurm-request-refused",
            id="a step of a job that has ended",
        ),
        pytest.param(
            "slurmstepd: error: common_cgroup_instantiate: unable to create cgroup "
            "'/sys/fs/cgroup/memory/slurm/uid_7' : No space left on device\n",
            "slurm-step-not-started",
            id="a cgroup for which the kernel has no room",
        ),
        pytest.param(
            f"{PYXIS}failed to import docker image\n{PYXIS}printing enroot log file:\n"
            f"{PYXIS}    [ERROR] URL https://registry-1.docker.io/v2/lab/train/manifests/9 "
            "returned error code: 401 Unauthorized\n"
            f"{PYXIS}couldn't start container\n"
            "slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with "
            "rc=-1\nslurmstepd: error: Failed to invoke spank plugin stack\n",
            "container-not-started",
            id="an image that may not be pulled",
        ),
        pytest.param(
            f"{PYXIS}    enroot-nsenter: failed to create user namespace: No space left on "
            "device\n",
            "container-not-started",
            id="a limit of namespaces that is no full disk",
        ),
        pytest.param(
            "docker: permission denied while trying to connect to the Docker daemon socket at "
            "unix:///var/run/docker.sock: Get version: dial unix: connect: permission denied\n",
            "container-not-started",
            id="a user who may not use Docker",
        ),
        pytest.param(
            'docker: Error response from daemon: could not select device driver "" with '
            "capabilities: [[gpu]].\n",
            "docker-gpu-runtime-missing",
            id="a daemon's answer that has a condition of its own",
        ),
        pytest.param(
            "docker: Error response from daemon: OCI runtime create failed: runc create failed: "
            'unable to start container process: exec: \\"deepspeed\\": executable file not found '
            "in $PATH: unknown.\n",
            "launch-file-missing",
            id="a program that the image does not have, in quotes that are escaped",
        ),
        pytest.param(
            "mpirun has detected an attempt to run as root.\n",
            "mpi-run-as-root",
            id="mpirun as root",
        ),
        pytest.param(
            "ValueError: Total available GPUs 8.0 is less than total desired GPUs 16\n",
            "ray-resources-missing",
            id="a node that did not join Ray",
        ),
        pytest.param(
            "sky.exceptions.ResourcesUnavailableError: Failed to provision all possible "
            "launchable resources. Relax the task's resource requirements\n",
            "instance-not-provisioned",
            id="a cloud without a free machine",
        ),
        pytest.param(
            "RuntimeError: synStatus=8 [Device not found] Device acquire failed.\n",
            "accelerator-not-acquired",
            id="an HPU that another process holds",
        ),
        pytest.param(
            "OSError: [WinError 126] The specified module could not be found. Error loading "
            '"C:\\py\\torch\\lib\\fbgemm.dll" or one of its dependencies.\n',
            "torch-import-broken",
            id="a DLL of torch that Windows cannot load",
        ),
        pytest.param(
            "failed (exitcode: 3221225477) local_rank: 0 (pid: 9132) of binary: C:\\python.exe\n",
            "native-crash",
            id="an access violation, as torchrun prints it on Windows",
        ),
        pytest.param(
            "RuntimeError: call aclnnMm failed, detail:EL0004: [PID: 7] "
            "2024-05-21-10:00:00.123.456 Failed to allocate memory.\n",
            "gpu-oom",
            id="an operator that fails for want of NPU memory",
        ),
        pytest.param(
            "RuntimeError: x.cpp:9 NPU function error: HBM MULTI BIT ECC ERROR. time is 7, error "
            "code is 507054\n",
            "gpu-hardware-fault",
            id="memory errors of an NPU",
        ),
    ],
)
def test_what_kept_the_job_from_its_start_is_named(text: str, condition: str) -> None:
    assert [cause.condition for cause in read(text).causes][:2] == [condition]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(UNKNOWN_MODULE + PROGRESS + "{'train_runtime': 12.1}\n", id="an old module"),
        pytest.param(NO_ENVIRONMENT + PROGRESS + "{'train_runtime': 12.1}\n", id="the base env"),
        pytest.param(
            "Warning  FailedScheduling  2m  default-scheduler  0/5 nodes are available: 5 "
            "Insufficient memory.\nNormal  Scheduled  1m  default-scheduler  Successfully "
            "assigned lab/train-0 to n3\n",
            id="a pod that waited",
        ),
        pytest.param(
            "(autoscaler) Warning: The following resource request cannot be scheduled right now: "
            "{'GPU': 1.0}. This is likely due to all cluster resources being claimed by actors.\n"
            + PROGRESS,
            id="a task that waited for a GPU",
        ),
        pytest.param(
            "Error response from daemon: No such container: train\n" + PROGRESS,
            id="docker rm of what is not there",
        ),
    ],
)
def test_a_run_that_went_on_is_healthy(text: str) -> None:
    assert said(text) == "clean"


def test_a_command_that_failed_before_the_run_explains_what_it_would_have_set_up() -> None:
    assert said(UNKNOWN_MODULE + NO_LAUNCHER) == "environment-module-missing"
    assert said(UNKNOWN_MODULE + NO_TORCH) == "environment-module-missing"
    assert said(NO_ENVIRONMENT + NO_TORCH) == "env-not-activated"


def test_it_explains_nothing_else_and_nothing_before_it() -> None:
    assert said(UNKNOWN_MODULE + OWN) == "user-code"
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB\n"
    assert said(UNKNOWN_MODULE + oom) == "gpu-oom"
    less_certain = "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `x`\n"
    assert said(UNKNOWN_MODULE + less_certain) == "gpu-oom"
    assert said(NO_TORCH + UNKNOWN_MODULE) == "torch-missing"
    assert said(NO_TORCH + UNKNOWN_MODULE + NO_LAUNCHER) == "torch-missing"
    assert said("job.sh: 2: source: not found\n" + UNKNOWN_MODULE) == "env-not-activated"
    cancelled = "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-03-24T17:21:31 ***\n"
    assert said(UNKNOWN_MODULE + cancelled) == "job-cancelled"
    assert said("job.sh: line 3: python: command not found\n" + cancelled) == "job-cancelled"
    assert said("job.sh: line 3: python: command not found\n") == "launch-file-missing"


SUBMITIT = (
    "submitit.core.utils.UncompletedJobError: Job 7 (task: 0) with path /x/7_0_result.pkl\n"
    "has not produced any output (state: {})\n"
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(SUBMITIT.format("NODE_FAIL"), "node-failed", id="a lost node"),
        pytest.param(SUBMITIT.format("TIMEOUT"), "job-time-limit", id="a time limit"),
        pytest.param(SUBMITIT.format("PREEMPTED"), "job-preempted", id="a preempted job"),
        pytest.param(SUBMITIT.format("CANCELLED"), "job-cancelled", id="a cancelled job"),
        pytest.param(
            "srun: error: n1: task 0: Out Of Memory\n", "host-oom-killed", id="a task out of memory"
        ),
        pytest.param(
            "ValueError: You set `devices=4` in Lightning, but the number of tasks per node "
            "configured in SLURM `--ntasks-per-node=1` does not match. HINT: Set `devices=1`.\n",
            "slurm-request-mismatch",
            id="Lightning's devices and Slurm's tasks",
        ),
        pytest.param(
            "rocBLAS error: Cannot read /x/rocblas/library/TensileLibrary.dat: No such file or "
            "directory for GPU arch : gfx1032\nAborted (core dumped)\n",
            "gpu-arch-unsupported",
            id="an AMD GPU without kernels",
        ),
    ],
)
def test_what_ended_the_job_is_named(text: str, condition: str) -> None:
    assert said(text) == condition


def test_what_a_service_reports_of_a_job_is_not_the_scripts_exception() -> None:
    told = "sagemaker.exceptions.UnexpectedStatusException: Error for Training job t: Failed.\n"
    assert said(told) == "unrecognised"
    assert said("botocore.exceptions.ClientError: An error occurred\n") == "unrecognised"


def test_a_container_that_a_signal_ended_follows_from_what_failed_elsewhere() -> None:
    ended = f"{PYXIS}child 4711 terminated with signal 9\n"
    assert said(ended) == "container-not-started"
    assert said(OWN + ended) == "user-code"
    cancelled = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-04T05:06:07 ***\n"
    assert said(ended + cancelled) == said(cancelled + ended) == "job-cancelled"
