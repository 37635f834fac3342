"""Logs that end with what a tool reports of its own failure are not healthy.

Over 400 lines because each of some eighty tools has a row of its own.
"""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
STEPS = "".join(f"{{'loss': {3 - n / 10}, 'epoch': {n / 10}}}\n" for n in range(1, 6))


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "  error: subprocess-exited-with-error\n\n"
            "  × Building wheel for foo (pyproject.toml) did not run successfully.\n"
            "  │ exit code: 1\n  ╰─> [2 lines of output]\n      running build\n"
            "      no such option\n      [end of output]\n\n"
            "  note: This error originates from a subprocess, and is likely not a problem with pip.\n"
            "  ERROR: Failed building wheel for foo\nFailed to build foo\n"
            "ERROR: Could not build wheels for foo, which is required to install "
            "pyproject.toml-based projects\n",
            "ERROR: Could not build wheels for foo",
            id="a wheel that pip could not build",
        ),
        pytest.param(
            "error: failed-wheel-build-for-install\n\n"
            "× Failed to build installable wheels for some pyproject.toml based projects\n╰─> foo\n",
            "× Failed to build installable wheels",
            id="the same in pip 25",
        ),
        pytest.param(
            "error: metadata-generation-failed\n\n"
            "× Encountered error while generating package metadata.\n╰─> See above for output.\n\n"
            "note: This is an issue with the package mentioned above, not pip.\n"
            "hint: See above for details.\n",
            "× Encountered error while generating package metadata.",
            id="metadata that pip could not generate",
        ),
        pytest.param(
            "  ERROR: Failed building wheel for foo\nslept 3 s\nthe job is over\n",
            "ERROR: Failed building wheel for foo",
            id="a wheel, and what the script printed after it",
        ),
        pytest.param(
            "  × Failed to build `foo==2.5.8`\n  ├─▶ The build backend returned an error\n"
            "  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)\n",
            "× Failed to build `foo==2.5.8`",
            id="a build by uv",
        ),
        pytest.param(
            "error: Failed to spawn: `foo`\n  Caused by: Exec format error (os error 8)\n",
            "error: Failed to spawn: `foo`",
            id="a program that uv may not start",
        ),
        pytest.param(
            '#9 12.81 ERROR: failed to solve: process "/bin/sh -c make" did not complete '
            "successfully: exit code: 2\n",
            "ERROR: failed to solve",
            id="an image that BuildKit could not build",
        ),
        pytest.param(
            "The command '/bin/sh -c make' returned a non-zero code: 2\n",
            "returned a non-zero code: 2",
            id="an image that docker build could not build",
        ),
        pytest.param("train-1 exited with code 1\n", "exited with code 1", id="docker compose"),
        pytest.param(
            "NAME      READY   STATUS             RESTARTS      AGE\n"
            "train-0   0/1     CrashLoopBackOff   7 (2m ago)    15m\n"
            "train-1   1/1     Running            0             15m\n",
            "`kubectl logs --previous train-0` shows what its container printed",
            id="a container that ends again and again",
        ),
        pytest.param(
            "lab   train-0   0/1   Init:Error   0   15m\n",
            "`kubectl logs --previous train-0`",
            id="a container that prepares the pod",
        ),
        pytest.param(
            "    State:          Terminated\n      Reason:       Error\n      Exit Code:    1\n"
            "    Ready:          False\n    Restart Count:  0\n",
            "Reason:       Error",
            id="a container's state in kubectl describe",
        ),
        pytest.param(
            "  Warning  BackoffLimitExceeded  5m  job-controller  Job has reached the specified "
            "backoff limit\n",
            "BackoffLimitExceeded",
            id="a job of Kubernetes",
        ),
        pytest.param(
            "(raylet) worker_pool.cc:548: Some workers of the worker process(12) have not "
            "registered within the timeout. The process is still alive, probably it's hanging "
            "during start.\n",
            "have not registered within the timeout",
            id="a worker of Ray that does not come up",
        ),
        pytest.param(
            "Status message: Job entrypoint command failed with exit code 1, last available logs "
            "(truncated to 20,000 chars):\n",
            "failed with exit code 1",
            id="a job of Ray",
        ),
        pytest.param(
            "------------------------------\nJob 'raysubmit_abc' failed\n"
            "------------------------------\n",
            "Job 'raysubmit_abc' failed",
            id="a job of Ray, between two rules",
        ),
        pytest.param(
            "./run.sh: line 3: prepare: command not found\n",
            "line 3: prepare: command not found",
            id="bash",
        ),
        pytest.param(
            "./run.sh: line 10: MASTER: unbound variable\n", "unbound variable", id="bash -u"
        ),
        pytest.param("run.sh: 3: prepare: not found\n", "run.sh: 3: prepare: not found", id="dash"),
        pytest.param("zsh: command not found: prepare\n", "zsh: command not found", id="zsh"),
        pytest.param(
            "'prepare' is not recognized as an internal or external command,\n"
            "operable program or batch file.\n",
            "is not recognized as an internal or external command",
            id="Windows' shell",
        ),
        pytest.param("make: *** [Makefile:12: all] Error 2\n", "make: ***", id="make"),
        pytest.param(
            "make: *** No rule to make target 'x'.  Stop.\n",
            "No rule to make target",
            id="a target",
        ),
        pytest.param("ninja: fatal: posix_spawn: x\n", "ninja: fatal", id="ninja"),
        pytest.param(
            "ptxas fatal   : Ptx assembly aborted due to errors\n", "ptxas fatal", id="ptxas"
        ),
        pytest.param(
            "nvlink error   : Undefined reference to 'f' in 'x.o'\n", "nvlink error", id="nvlink"
        ),
        pytest.param("collect2: error: ld returned 1 exit status\n", "collect2: error", id="GCC"),
        pytest.param(
            "error: command '/usr/bin/g++' failed with exit code 1\n",
            "error: command '/usr/bin/g++' failed",
            id="setuptools",
        ),
        pytest.param(
            "CMake Error at CMakeLists.txt:12 (find_package):\n  Could not find a package\n"
            "-- Configuring incomplete, errors occurred!\n",
            "Configuring incomplete",
            id="CMake",
        ),
        pytest.param(
            "error: could not compile `tokenizers` (lib) due to 1 previous error\n",
            "could not compile",
            id="cargo",
        ),
        pytest.param(
            "Error downloading object: model.bin (abc): Smudge error: batch response: Rate limit "
            "exceeded.\n",
            "Error downloading object",
            id="git lfs",
        ),
        pytest.param(
            "fatal: not a git repository (or any of the parent directories): .git\n",
            "fatal: not a git repository",
            id="git",
        ),
        pytest.param("E: Unable to locate package foo\n", "Unable to locate package", id="apt"),
        pytest.param(
            "tar: Unexpected EOF in archive\ntar: Error is not recoverable: exiting now\n",
            "tar: Error is not recoverable",
            id="tar",
        ),
        pytest.param("curl: (22) The requested URL returned error: 404\n", "curl: (22)", id="curl"),
        pytest.param(
            "rsync error: some files/attrs were not transferred (code 23) at main.c(1338)\n",
            "rsync error",
            id="rsync",
        ),
        pytest.param(
            "cp: cannot stat '/data/x': No such file or directory\n", "cp: cannot stat", id="cp"
        ),
        pytest.param(
            "An error occurred (403) when calling the HeadObject operation: Forbidden\n",
            "An error occurred (403)",
            id="the AWS CLI",
        ),
        pytest.param(
            'Error from server (NotFound): pods "train-0" not found\n',
            "Error from server",
            id="kubectl",
        ),
        pytest.param(
            "train.service: Main process exited, code=exited, status=1/FAILURE\n",
            "status=1/FAILURE",
            id="systemd",
        ),
        pytest.param(
            "Command exited with non-zero status 1\n1.05user 0.21system 0:03.10elapsed\n",
            "non-zero status 1",
            id="time",
        ),
        pytest.param("Error: Process completed with exit code 1.\n", "exit code 1", id="GitHub"),
        pytest.param("Finished: FAILURE\n", "Finished: FAILURE", id="Jenkins"),
        pytest.param(
            "ERROR conda.cli.main_run:execute(49): `conda run python train.py` failed. (See above "
            "for error)\n",
            "`conda run python train.py` failed",
            id="conda run",
        ),
        pytest.param("(1) Normal termination (return value 1)\n", "return value 1", id="HTCondor"),
        pytest.param(
            "INFO: starting\nERROR:root:the loader stopped\n", "ERROR:root", id="a logger's level"
        ),
        pytest.param(
            "error: No virtual environment found; run `uv venv` to create an environment\n",
            "error: No virtual environment found",
            id="a message that begins with no",
        ),
        pytest.param(
            "Could not solve for environment specs\nThe following packages are incompatible\n"
            "└─ foo does not exist (perhaps a typo or a missing channel).\n"
            "critical libmamba Could not solve for environment specs\n",
            "critical libmamba Could not solve",
            id="mamba",
        ),
        pytest.param(
            "EnvironmentLocationNotFound: Not a conda environment: /x/env\n",
            "EnvironmentLocationNotFound",
            id="conda",
        ),
        pytest.param(
            "unknown flag: --gpu\nSee 'docker run --help'.\n", "unknown flag", id="an option"
        ),
        pytest.param(
            "NAME    STATUS   COMPLETIONS   DURATION   AGE\ntrain   Failed   0/1   5m   5m\n",
            "`kubectl describe job train`",
            id="a job in kubectl's table",
        ),
        pytest.param(
            "4711         train        gpu        lab         64     FAILED      1:0 \n",
            "the job's own log shows why",
            id="a job in Slurm's accounting",
        ),
        pytest.param(
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
            "Job step aborted",
            id="a step of Slurm's",
        ),
        pytest.param(
            "[2024-01-01 10:00:00,000 C 1 1] (raylet) node_manager.cc:1: Check failed: x\n",
            "Check failed: x",
            id="a check of Ray's",
        ),
        pytest.param(
            "Abort(1090319) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: x\n",
            "Fatal error in PMPI_Init",
            id="MPICH",
        ),
        pytest.param(
            '[mpiexec@n1] HYDU_sock_connect: unable to connect from "n1" to "n2"\n',
            "unable to connect",
            id="Hydra",
        ),
        pytest.param(
            "The system cannot find the path specified.\n", "the path specified", id="cmd"
        ),
        pytest.param(
            "    + CategoryInfo          : ObjectNotFound: (x:String) []\n"
            "    + FullyQualifiedErrorId : CommandNotFoundException\n",
            "FullyQualifiedErrorId",
            id="PowerShell",
        ),
        pytest.param("x.cpp(12): error C2065: 'foo': undeclared\n", "error C2065", id="MSVC"),
        pytest.param(
            '2 errors detected in the compilation of "/x/foo.cu".\n', "2 errors detected", id="nvcc"
        ),
        pytest.param(
            "/usr/bin/ld: foo.o: undefined reference to symbol 'bar'\n",
            "undefined reference",
            id="the linker",
        ),
        pytest.param(
            "thread 'main' panicked at src/main.rs:10:5:\nindex out of bounds\n"
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
            "thread 'main' panicked",
            id="a program in Rust",
        ),
        pytest.param(
            'Exception in thread "main" java.lang.NoClassDefFoundError: foo\n\tat x.main(x.java:3)\n',
            "Exception in thread",
            id="a program in Java",
        ),
        pytest.param(
            "git: 'lfs' is not a git command. See 'git --help'.\n\nThe most similar command is\n"
            "\tlog\n",
            "'lfs' is not a git command",
            id="an extension of git",
        ),
        pytest.param(
            "E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a'\n",
            "dpkg was interrupted",
            id="dpkg",
        ),
        pytest.param(
            "Error: \n Problem: cannot install the best candidate for the job\n"
            "  - nothing provides x needed by y\n"
            "(try to add '--skip-broken' to skip uninstallable packages)\n",
            "Error:",
            id="dnf",
        ),
        pytest.param(
            "ERROR: (ResourceNotFound) The Resource was not found.\nCode: ResourceNotFound\n"
            "Message: x\n",
            "(ResourceNotFound)",
            id="the Azure CLI",
        ),
        pytest.param(
            "FATAL Flags parsing error: Unknown command line flag 'x'\n"
            "Pass --helpshort or --helpfull to see help on flags.\n",
            "Flags parsing error",
            id="absl",
        ),
        pytest.param(
            "Unable to locate credentials. You can configure credentials by running x.\n",
            "Unable to locate credentials",
            id="a sentence",
        ),
    ],
)
def test_a_tools_report_of_its_failure_ends_no_healthy_log(text: str, said: str) -> None:
    found = read("preparing\n" + text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert said in found.summary


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("./run.sh: line 3: nvtop: command not found\nloading\ndone\n", id="a tool"),
        pytest.param("  ERROR: Failed building wheel for foo\n" + STEPS, id="before the run"),
        pytest.param(
            "  ERROR: Failed building wheel for foo\nSuccessfully installed foo-1.0\n",
            id="pip's older way to build",
        ),
        pytest.param("rm: cannot remove '/tmp/x': No such file or directory\n", id="tidying up"),
        pytest.param("mkdir: cannot create directory 'out': File exists\n", id="a folder"),
        pytest.param("epoch 3\nError: 0.031\n", id="a metric"),
        pytest.param("epoch: 3: loss 2.3\n", id="numbers after names"),
        pytest.param("E: 0.31 V: 0.22\n", id="short names of metrics"),
        pytest.param("ERROR RATE: 0.3\n", id="a metric in capitals"),
        pytest.param("0 errors detected\n", id="no errors"),
        pytest.param(
            "./run.sh: line 3: kill: (123) - No such process\n", id="ending what has ended"
        ),
        pytest.param(
            "Could not estimate the number of tokens of the input, floating-point operations will "
            "not be computed\n",
            id="what transformers cannot estimate",
        ),
        pytest.param(
            "Failed to export span batch code: 403, reason: Forbidden",
            id="a collector of traces that refuses them",
        ),
        pytest.param(
            "Failed to export metrics to collector:4317, error code: StatusCode.UNAVAILABLE",
            id="a collector of metrics that is not there",
        ),
        pytest.param(
            "Unable to import flash_attn; falling back to eager attention\n", id="a fallback"
        ),
        pytest.param("Failed to import apex, using torch LayerNorm instead\n", id="a replacement"),
        pytest.param(
            "E0000 00:00:1712 12345 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting "
            "to register factory for plugin cuDNN when one has already been registered\n",
            id="TensorFlow's start",
        ),
        pytest.param("wandb: ERROR Failed to detect the name of this notebook\n", id="a tracker"),
        pytest.param(
            "4711         train        gpu        lab         64  COMPLETED      0:0 \n",
            id="a job that Slurm completed",
        ),
        pytest.param("errors: none\nfatal: 0\n", id="counts"),
        pytest.param("exit code: 0\n", id="an exit status of success"),
        pytest.param("train.service: Main process exited, status=0/SUCCESS\n", id="systemd"),
        pytest.param("train-0   1/1   Running   0   15m\n", id="a pod that runs"),
        pytest.param("train-0   0/1   Completed   0   15m\n", id="a pod that has finished"),
        pytest.param(
            "A pod in CrashLoopBackOff is started again after a while.\n", id="prose about pods"
        ),
        pytest.param(
            "The ERROR: Failed building wheel message of pip means that a compiler is missing.\n",
            id="prose about pip",
        ),
        pytest.param(
            "With set -e, bash ends a script at the first command not found, make at *** lines.\n",
            id="prose about shells",
        ),
    ],
)
def test_what_a_script_went_on_after_or_only_mentions_is_no_end(text: str) -> None:
    assert read("preparing\n" + text).outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("run.sh: line 12: --lr: command not found", id="an option alone, bash"),
        pytest.param("run.sh: 12: --lr=3e-5: not found", id="an option alone, dash"),
        pytest.param("run.sh: line 41: run.workers=0: command not found", id="a setting alone"),
        pytest.param("run.sh: line 35: syntax error: unexpected end of file", id="syntax, bash"),
        pytest.param('run.sh: 5: Syntax error: "(" unexpected', id="syntax, dash"),
        pytest.param(
            "run.sh: line 9: unexpected EOF while looking for matching `\"'", id="a quote"
        ),
    ],
)
def test_a_shell_that_cannot_read_the_script_names_the_scripts_own_fault(said: str) -> None:
    found = read(f"loading\n{said}\n")
    assert found.outcome is Outcome.USER_CODE
    assert said[:20] in found.summary


def test_a_program_that_the_shell_does_not_find_is_not_a_mistake_of_the_script() -> None:
    found = read("loading\nrun.sh: line 12: prepare: command not found\n")
    assert found.outcome is Outcome.UNRECOGNISED


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            "CUDA kernel errors might be asynchronously reported at some other API call, so the "
            "stacktrace below might be incorrect.\n",
            id="the first",
        ),
        pytest.param("For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n", id="the second"),
        pytest.param(
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n", id="the third"
        ),
    ],
)
def test_what_torch_adds_to_an_error_of_the_accelerator_ends_no_healthy_log(lines: str) -> None:
    assert read(f"loading\n{lines}").outcome is Outcome.UNRECOGNISED


def test_of_an_error_of_hip_the_sentence_below_it_is_enough() -> None:
    below = "HIP kernel errors might be asynchronously reported at some other API call\n"
    assert [one.condition for one in read(below).causes] == ["hip-runtime-error"]
    full = f"RuntimeError: HIP error: out of memory\n{below}"
    assert [one.condition for one in read(full).causes] == ["gpu-oom"]


def test_an_option_that_sbatch_reads_over_did_not_end_the_submission() -> None:
    refused = "sbatch: unrecognized option '--gpus-per-node=8'\n"
    ended = (
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller "
        "(connect failure)\n"
    )
    assert [one.condition for one in read(refused + ended).causes] == [
        "slurm-controller-unreachable"
    ]
    assert [one.condition for one in read(refused).causes] == ["launch-option-refused"]
    assert not read(f"{refused}Submitted batch job 412\n").causes


def test_the_second_sentence_of_a_mismatch_between_collectives_is_enough() -> None:
    text = "[rank1]: RuntimeError: Collectives differ in the following aspects:\n Op type: A vs B\n"
    assert [one.condition for one in read(text).causes] == ["collective-mismatch"]
