"""Logs that end with failed tests, with jobs that wait in vain, or with a dead kernel."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
STEPS = "".join(f"{{'loss': {3 - n / 10}, 'epoch': {n / 10}}}\n" for n in range(1, 6))
#: Open MPI's frame.
ROW = "-" * 74 + "\n"


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "=========== short test summary info ===========\n"
            "FAILED tests/test_cli.py::test_release - assert 2 == 3\n"
            "=========== 1 failed, 41 passed in 12.44s ===========\n",
            "FAILED tests/test_cli.py::test_release",
            id="pytest names the test that failed",
        ),
        pytest.param(
            "..F.\n1 failed, 116 passed, 2 warnings in 48.10s\n",
            "1 failed, 116 passed",
            id="pytest only counts",
        ),
        pytest.param(
            "========== 41 passed, 2 errors in 9.10s (0:00:09) ==========\n",
            "2 errors in",
            id="pytest counts errors of fixtures",
        ),
        pytest.param("Ran 2 tests in 0.4s\n\nFAILED (failures=1)\n", "failures=1", id="unittest"),
        pytest.param(
            "The following tests FAILED:\n\t  3 - reduce (Failed)\nErrors while running CTest\n",
            "Errors while running CTest",
            id="ctest",
        ),
        pytest.param(
            "[  PASSED  ] 11 tests.\n[  FAILED  ] 1 test, listed below:\n"
            "[  FAILED  ] Reduce.Bf16\n\n 1 FAILED TEST\n",
            "Reduce.Bf16",
            id="GoogleTest",
        ),
        pytest.param(
            "--- FAIL: TestReduce (0.00s)\n    reduce_test.go:14: got 3\nFAIL\nexit status 1\n"
            "FAIL\texample.com/reduce\t0.004s\nFAIL\n",
            "FAIL example.com/reduce",
            id="go test",
        ),
        pytest.param(
            "Test Suites: 1 failed, 11 passed, 12 total\nTests:       2 failed, 88 passed, 90 total\n"
            "Snapshots:   0 total\nTime:        4.112 s\nRan all test suites.\n",
            "2 failed, 88 passed",
            id="Jest",
        ),
        pytest.param("Found 2 errors in 2 files (checked 31 source files)\n", "Found 2", id="mypy"),
        pytest.param(
            "a.py:3:8: F401 `os` imported but unused\nFound 1 error.\n[*] 1 fixable with x\n",
            "Found 1 error.",
            id="ruff",
        ),
        pytest.param(
            "ruff.........................................Failed\n- hook id: ruff\n- exit code: 1\n\n"
            "a.py:3:8: F401\n",
            "....Failed",
            id="pre-commit",
        ),
        pytest.param(
            "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\n"
            "npm ERR! \nnpm ERR! While resolving: a@0.1.0\nnpm ERR! Found: b@18.2.0\n"
            'npm ERR! node_modules/b\nnpm ERR!   b@"^18" from the root project\nnpm ERR! \n'
            "npm ERR! A complete log of this run can be found in:\nnpm ERR!     /root/x.log\n",
            "npm ERR! code ERESOLVE",
            id="npm, whatever it prints below the reason",
        ),
        pytest.param(
            "error Command failed with exit code 2.\ninfo Visit x for documentation.\n",
            "exit code 2",
            id="yarn",
        ),
        pytest.param(
            "PLAY RECAP ****\ngpu02 : ok=4    changed=0    unreachable=0    failed=1    skipped=0\n",
            "failed=1",
            id="Ansible",
        ),
        pytest.param(
            "NAME      READY   STATUS    RESTARTS   AGE\n"
            "train-0   0/1     Pending   0          3h12m\n",
            "`kubectl describe pod train-0`",
            id="a pod that has waited for hours",
        ),
        pytest.param(
            "train-0   0/1   Init:0/1   0   3h\n", "describe pod train-0", id="its init container"
        ),
        pytest.param(
            "   88123   gpu   sft   user PD   0:00   4 (DependencyNeverSatisfied)\n",
            "`scontrol show job 88123`",
            id="a job that Slurm will never start",
        ),
        pytest.param(
            "012 (4412.000.000) 05/02 08:12:44 Job was held.\n\tError from slot1_1@gpu3: memory\n"
            "\tCode 34 Subcode 0\n",
            "Job was held",
            id="HTCondor",
        ),
        pytest.param(
            "[I 10:19:20 ServerApp] AsyncIOLoopKernelRestarter: restarting kernel (1/5)\n"
            "[W 10:19:20 ServerApp] kernel 5e5c restarted\n",
            "`dmesg`",
            id="a kernel that died",
        ),
        pytest.param(
            "Epoch 1/3\nThe kernel appears to have died. It will restart automatically.\n",
            "appears to have died",
            id="what a notebook says of it",
        ),
        pytest.param(
            "| GPU Memory                | Fail - GPU: 3                |\n"
            "| Warning                   | GPU 3 Memory test failed     |\n+-----+-----+\n",
            "Fail - GPU: 3",
            id="a row of a diagnostic",
        ),
        pytest.param(
            "2026-05-02 08:12:44,121 - train - ERROR - Training failed: no list of shards\n",
            "Training failed",
            id="a logger of Python",
        ),
        pytest.param(
            "05/02/2026 08:12:44 - ERROR - __main__ - no shard is left\n",
            "no shard is left",
            id="the same without a name before the level",
        ),
        pytest.param("[08:12:44] ERROR    no shard is left    a.py:41\n", "no shard", id="rich"),
        pytest.param('time="x" level=fatal msg="no shard"\n', "level=fatal", id="a Go program"),
        pytest.param(
            "Error in train(df) : object 'df' not found\nCalls: train\nExecution halted\n",
            "Execution halted",
            id="R",
        ),
        pytest.param(
            "Error: boom\n    at Object.<anonymous> (/app/a.js:14:11)\n\nNode.js v20.15.0\n",
            "Error: boom",
            id="Node.js",
        ),
        pytest.param(
            "==4411== ERROR SUMMARY: 3 errors from 2 contexts\n", "3 errors", id="Valgrind"
        ),
        pytest.param(
            "[INFO] [autotuner.py:1110:run_after_tuning] No optimal DeepSpeed configuration found "
            "by autotuning.\n",
            "No optimal DeepSpeed configuration",
            id="DeepSpeed's autotuner",
        ),
        pytest.param(
            "INFO exited: train (exit status 1; not expected)\n"
            "INFO gave up: train entered FATAL state, too many start retries too quickly\n",
            "entered FATAL state",
            id="supervisord",
        ),
        pytest.param("==4411==ABORTING\n", "ABORTING", id="a sanitizer"),
        pytest.param("  1 failing\n\n  1) reduce\n       sums:\n", "1 failing", id="Mocha"),
        pytest.param(
            "wandb: ERROR Detected 3 failed runs in the first 60 seconds, killing sweep.\n"
            "wandb: To disable this check set WANDB_AGENT_DISABLE_FLAPPING=true\n",
            "Detected 3 failed runs",
            id="a sweep that gives up",
        ),
        pytest.param(
            "    Message:  PyTorchJob sft is failed because 1 Worker replica(s) failed.\n"
            "    Reason:   PyTorchJobFailed\n    Status:   True\n    Type:     Failed\n",
            "PyTorchJobFailed",
            id="a job of Kubeflow",
        ),
        pytest.param(
            "[node7:21231] PML ucx cannot be selected\n", "PML ucx", id="Open MPI without its UCX"
        ),
        pytest.param(
            'psycopg2.OperationalError: connection to server at "db", port 5432 failed: refused\n',
            "OperationalError",
            id="a database that cannot be reached is not the script's own",
        ),
    ],
)
def test_such_an_end_is_not_clean(text: str, said: str) -> None:
    found = read("preparing\n" + text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert said in found.summary


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("====== 118 passed, 2 xfailed, 5 warnings in 33.17s ======\n", id="pytest"),
        pytest.param("test_failures.py::test_failed PASSED\n", id="a test named after a failure"),
        pytest.param("0 failed, 12 passed in 3.1s\n", id="no test failed"),
        pytest.param("100% tests passed, 0 tests failed out of 41\n", id="ctest"),
        pytest.param("[  PASSED  ] 12 tests.\n", id="GoogleTest"),
        pytest.param("Tests:       90 passed, 90 total\n", id="Jest"),
        pytest.param("1 failed, 3 passed in 2.0s\n" + STEPS, id="a training after failed tests"),
        pytest.param("Found 3 errors in shard 4, skipped\n" + STEPS, id="a count of a script"),
        pytest.param(
            "npm warn deprecated a@3.0.2\n\nadded 412 packages in 9s\n", id="npm's warnings"
        ),
        pytest.param("train-0   0/1   Pending   0   3s\n", id="a pod that was just created"),
        pytest.param(
            "train-0   0/1   Pending   0   2m\ntrain-0   0/1   ContainerCreating   0   2m\n"
            "train-0   1/1   Running   0   3m\n",
            id="a pod that was watched until it ran",
        ),
        pytest.param(
            "train-0   0/1   CrashLoopBackOff   3   9m\ntrain-0   1/1   Running   4   9m\n",
            id="a pod that came up after all",
        ),
        pytest.param("   88123  gpu  sft  user PD  0:00  4 (Priority)\n", id="a job in its queue"),
        pytest.param(
            "gpu01 : ok=12  changed=3  unreachable=0  failed=0  skipped=2\n", id="Ansible"
        ),
        pytest.param(
            "2026-05-02 08:12:44,121 - train - ERROR - no cache, skipping it\n",
            id="a logger of a script that goes on",
        ),
        pytest.param(
            "2026-05-02 08:12:44,121 - train - ERROR - sample 4 is unreadable\n"
            "2026-05-02 08:13:44,121 - train - INFO - all done\n",
            id="a logger that says more",
        ),
        pytest.param("==4411== ERROR SUMMARY: 0 errors from 0 contexts\n", id="Valgrind"),
        pytest.param("ok  \texample.com/reduce\t0.004s\nPASS\n", id="go test"),
        pytest.param("[I 10:00:00 ServerApp] Kernel restarted: 5e5c\n", id="a restart by hand"),
        pytest.param("| GPU Memory      | Pass - All      |\n", id="a diagnostic without a fault"),
    ],
)
def test_such_a_line_is_no_failure(text: str) -> None:
    assert read("preparing\n" + text).outcome is Outcome.CLEAN


def test_the_frames_of_open_mpi_make_no_document() -> None:
    found = read(
        ROW + "Primary job  terminated normally, but 1 process returned\n"
        "a non-zero exit code. Per user-direction, the job has been aborted.\n" + ROW + ROW
        + "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
        "the job to be terminated. The first process to do so was:\n\n"
        "  Process name: [[41231,1],3]\n  Exit code:    1\n" + ROW
    )  # fmt: skip
    assert found.outcome is Outcome.UNRECOGNISED


def _raised(path: str, function: str, said: str) -> Diagnosis:
    return read(
        "Traceback (most recent call last):\n"
        '  File "/home/u/train.py", line 3, in <module>\n    main()\n'
        f'  File "{path}", line 11, in {function}\n    raise ValueError(\n{said}\n'
    )


@pytest.mark.parametrize(
    ("path", "product"),
    [
        pytest.param("/w/Megatron-LM/megatron/training/arguments.py", "megatron", id="Megatron-LM"),
        pytest.param("/w/verl/verl/trainer/ppo/ray_trainer.py", "verl", id="verl"),
        pytest.param("/w/torchtitan/torchtitan/train.py", "torchtitan", id="torchtitan"),
        pytest.param("/w/axolotl/src/axolotl/cli/config.py", "axolotl", id="axolotl"),
        pytest.param("/w/LF/src/llamafactory/data/parser.py", "llamafactory", id="LLaMA-Factory"),
        pytest.param("/opt/NeMo/nemo/collections/nlp/models/a.py", "nemo", id="NeMo"),
        pytest.param("/w/deps/lightning/fabric/strategies/a.py", "lightning", id="Lightning"),
    ],
)
def test_a_frameworks_checkout_is_not_the_script(path: str, product: str) -> None:
    found = _raised(path, "check", "ValueError: the mode of the day is not known")
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is not None
    assert found.raised_by.product == product


def test_a_projects_folder_of_that_name_is_the_scripts() -> None:
    found = _raised("/home/u/my/nemo/check.py", "check", "ValueError: the mode is not known")
    assert found.outcome is Outcome.USER_CODE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "2026:05:02-08:12:44:(30412) |CCL_ERROR| atl_ofi_comm.cpp:118 init transport failed\n"
            "terminate called after throwing an instance of 'ccl::v1::exception'\n",
            "the run died; the log reports '2026:05:02-08:12:44:(30412) |CCL_ERROR|",
            id="oneCCL, before C++ ends the process",
        ),
        pytest.param(
            ROW + "PRTE has lost communication with a remote daemon.\n\n  Remote daemon: x on n3\n",
            "the run died; the log reports 'PRTE has lost communication",
            id="Open MPI without one of its daemons",
        ),
        pytest.param(
            "Exited with exit code 1.\nkilled 3 helpers\n",
            "the run died and the log does not show why",
            id="nothing that says why",
        ),
    ],
)
def test_a_death_is_told_with_the_librarys_words(text: str, said: str) -> None:
    found = read("preparing\n" + text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.summary.startswith(said)
