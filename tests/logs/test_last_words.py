"""What a log says of its own end, and what a script says of what it left out or asked for."""

from __future__ import annotations

import json

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
NO_TORCH = (
    "-- probe for torch\n"
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
    "ModuleNotFoundError: No module named 'torch'\n"
    "-- torch not used\n"
)
SITE = "/opt/env/lib/python3.11/site-packages/"
REFUSED = "requests.exceptions.ConnectionError: ('Connection aborted.', BadStatusLine('x'))\n"


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="log", data=text.encode())], KNOWN)


def asked(*frames: str) -> str:
    """A request that failed, made by these files, the script's main function outermost."""
    told = "".join(f'  File "{file}", line 7, in send\n    x = y\n' for file in frames)
    return f"Traceback (most recent call last):\n{told}{REFUSED}"


@pytest.mark.parametrize(
    "last", ["Stage 2 failed!", "[run.sh] training failed", "❌ 训练失败", "eval FAILED\n\n"]
)
def test_a_script_that_says_last_that_the_run_failed_ends_no_sound_log(last: str) -> None:
    found = read(f"building the model\nbuilt\n{last}\n")
    assert found.outcome is Outcome.UNRECOGNISED
    assert last.split(maxsplit=1)[0] in found.summary


@pytest.mark.parametrize(
    "last",
    [
        "tests: 12 passed, 0 failed",
        "12 passed, 3 failed",
        "it has not failed",
        "upload failed, trying again\nupload done",
        "step 3 loss 2.0\nStage 2 failed!\nstep 9 loss 1.0",
    ],
)
def test_a_count_or_a_failure_that_more_follows_is_no_last_word(last: str) -> None:
    assert read(f"building the model\nbuilt\n{last}\n").outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "last",
    [
        pytest.param("Successfully built mylib-0.2.0-py3-none-any.whl", id="built"),
        pytest.param(
            "Successfully installed mylib-0.2.0\n\n[notice] A new release of pip is available",
            id="installed, with a notice",
        ),
    ],
)
def test_what_stands_above_an_installers_success_was_handled(last: str) -> None:
    found = read(f"{NO_TORCH}{last}\n")
    assert found.outcome is Outcome.CLEAN
    assert found.first_error is None


@pytest.mark.parametrize(
    "last", ["Successfully installed numpy-2.0\nbuilding", "Building mylib", "Successfully built "]
)
def test_what_stands_below_an_installers_success_was_not(last: str) -> None:
    assert [one.condition for one in read(f"{NO_TORCH}{last}\n").causes] == ["torch-missing"]


def test_what_a_program_says_that_it_leaves_out_did_not_end_it() -> None:
    said = "CUDA out of memory. Tried to allocate 2.00 GiB."
    assert read(f"[skip] Failed to load a.ckpt: {said}\nsaved b.csv\n").outcome is Outcome.CLEAN
    found = read(f"Failed to load a.ckpt: {said}\nsaved b.csv\n")
    assert [one.condition for one in found.causes] == ["gpu-oom"]


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(
            ("/home/me/env.py", f"{SITE}requests/api.py", f"{SITE}requests/sessions.py"),
            id="by requests",
        ),
        pytest.param(
            (f"{SITE}ray/worker.py", "/home/me/env.py", "/usr/lib/python3.11/urllib/request.py"),
            id="by urllib",
        ),
    ],
)
def test_a_request_of_the_scripts_own_is_not_one_to_the_hub(frames: tuple[str, ...]) -> None:
    found = read(asked(*frames))
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.causes == ()


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(
            (
                "/home/me/env.py",
                f"{SITE}huggingface_hub/file_download.py",
                f"{SITE}requests/api.py",
            ),
            id="by huggingface_hub",
        ),
        pytest.param((f"{SITE}requests/api.py",), id="by an unknown caller"),
    ],
)
def test_a_request_that_a_product_makes_may_be_one_to_the_hub(frames: tuple[str, ...]) -> None:
    assert [one.condition for one in read(asked(*frames)).causes] == ["hub-unreachable"]


def test_a_message_that_names_the_hub_stands_whoever_asked() -> None:
    text = asked("/home/me/env.py", f"{SITE}requests/api.py").replace(
        "('Connection aborted.', BadStatusLine('x'))",
        "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /m",
    )
    assert [one.condition for one in read(text).causes] == ["hub-unreachable"]


def test_a_checkpoint_without_its_state_is_incomplete() -> None:
    text = (
        f'Traceback (most recent call last):\n  File "{SITE}transformers/trainer_callback.py", '
        "line 7, in load_from_json\n    x = y\n"
        "FileNotFoundError: [Errno 2] No such file or directory: '/o/c-5/trainer_state.json'\n"
    )
    found = read(text)
    assert [one.condition for one in found.causes] == ["checkpoint-incomplete"]
    assert "`/o/c-5`" in found.causes[0].message


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("\n" * 500, id="many empty lines"),
        pytest.param(" \n\t\n" * 90, id="many lines of spaces and tabs"),
        pytest.param("\n\n", id="two line ends"),
    ],
)
def test_a_log_that_ends_with_blank_lines_is_not_empty(end: str) -> None:
    found = read(f"building the model\nStage 2 failed!{end}")
    assert found.outcome is Outcome.UNRECOGNISED
    assert "Stage 2" in found.summary
    assert not found.truncated
    assert read(f"building the model\nbuilt{end}").outcome is Outcome.CLEAN
    assert read(end).truncated


def test_a_limit_of_watches_is_no_full_disk() -> None:
    said = "failed: No space left on device\n"
    assert read(f"ERROR inotify_add_watch(/tmp) {said}").outcome is Outcome.CLEAN
    full = read(f"ERROR write(/tmp/x) {said}")
    assert [one.condition for one in full.causes] == ["disk-full"]


LAUNCHER = """\
W1123 10:09:26.909000 18285 torch/distributed/elastic/agent/server/api.py:753] Received {0} death \
signal, shutting down workers
Traceback (most recent call last):
  File "/opt/train/bin/torchrun", line 6, in <module>
    sys.exit(main())
  File "/opt/train/lib/python3.11/site-packages/torch/distributed/elastic/multiprocessing/api.py", \
line 85, in _terminate_process_handler
    raise SignalException(f"Process {{os.getpid()}} got signal: {{sigval}}", sigval=sigval)
torch.distributed.elastic.multiprocessing.api.SignalException: Process 18285 got signal: {0}
"""


def test_a_launcher_that_a_signal_ended_was_ended_from_outside() -> None:
    found = read(LAUNCHER.format(15))
    assert [cause.condition for cause in found.causes] == ["launcher-killed"]
    assert found.summary == (
        "SIGTERM from outside ended the launcher; the log does not show who sent it"
    )
    assert found.raised_by is None  # torch only passes it on
    assert read(LAUNCHER.format(2)).outcome is Outcome.CAUSE  # Ctrl-C has a condition


def test_the_calls_below_a_warning_are_no_end_of_a_log() -> None:
    calls = "Exception raised from sendBytes at /x/Utils.hpp:6 (most recent call first):\n"
    calls += "".join(
        f"frame #{n}: call_{n}() + 0x2{n} (0x7f in /x/libtorch.so)\n" for n in range(5)
    )
    head = "step 1 loss 2.0\n{0}W803 12:00:00.01 TCPStore.cpp:122] [c10d] sendBytes failed\n"
    assert read(head.format("[") + calls).outcome is Outcome.CLEAN
    assert read(head.format("[E2:") + calls).outcome is Outcome.UNRECOGNISED


def test_what_a_thread_reported_to_its_coordinator_ends_no_sound_log() -> None:
    said = "coordinator.py:224] Error reported to Coordinator: <class 'Unavailable'>, OS Error"
    assert said in read(f"building the model\nbuilt\n{said}\n").summary


def test_a_rank_that_sigterm_ended_first_was_ended_from_outside() -> None:
    line = "[2026-04-05 06:07:08,009] [{0}] [launch.py:3{1}:sigkill_handler] {2}\n"
    text = line.format("INFO", 15, "Killing subprocess 4711")
    ended = line.format("ERROR", 21, "['python', '-u', 'train.py'] exits with return code = {0}")
    assert read(text + ended.format(-15)).summary == (
        "SIGTERM from outside ended a rank, but the log does not show who sent it"
    )
    assert "SIGTERM" not in read(text + ended.format(1)).summary


def test_who_sent_the_signal_is_the_cause_where_the_log_shows_it() -> None:
    line = (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-23T10:09:26 DUE TO TIME LIMIT ***"
    )
    found = read(f"{line}\n{LAUNCHER.format(15)}")
    assert [one.condition for one in found.causes] == ["job-time-limit"]


def test_ranks_whose_collectives_differ_are_named_and_not_the_abort_that_follows() -> None:
    found = read(
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
        "  what():  [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:456] "
        "op.preamble.length <= op.nbytes. 8 vs 4\n"
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [10.0.0.2]:24823\n"
        "[2026-11-23 10:21:25,037] [ERROR] [launch.py:259:sigkill_handler] "
        "['/opt/train/bin/python3', '-u', 'train.py', '--local_rank=1'] exits with return code = -6\n"
    )
    assert [one.condition for one in found.causes] == ["collective-mismatch"]
    assert set(found.causes[0].masks) == {"native-crash", "peer-connection-lost"}


def test_a_message_below_its_call_is_quoted_once_and_without_the_marks_of_the_traceback() -> None:
    found = read(
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 5, in <module>\n'
        "    dist.barrier()  # all ranks\n"
        "    ^^^^^^^^^^^^^^\n"
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
        "peer [10.0.0.2]:24823\n"
    )
    assert [one.condition for one in found.causes] == ["peer-connection-lost"]
    (line,) = found.causes[0].evidence
    assert line.text.startswith("RuntimeError: ")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("IndexError", "index out of range in self"),
        ("IndexError", "Target 12 is out of bounds."),
        ("RuntimeError", "index 140 is out of bounds for dimension 0 with size 128"),
    ],
)
def test_an_index_beyond_a_table_of_the_model_is_the_datas_whoever_called(
    kind: str, message: str
) -> None:
    found = read(
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 4, in <module>\n'
        "    trainer.train()\n"
        '  File "/opt/train/lib/python3.11/site-packages/transformers/trainer.py", line 1576, in train\n'
        "    return inner_training_loop(\n"
        '  File "/opt/train/lib/python3.11/site-packages/torch/nn/functional.py", line 2615, in f\n'
        f"    return torch.f(weight, input)\n{kind}: {message}\n"
    )
    assert found.outcome is Outcome.USER_CODE


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        pytest.param('Missing "iommu=pt" from kernel command line', Outcome.CLEAN, id="rccl"),
        pytest.param("LL cutoff points not detected for gfx942", Outcome.CLEAN, id="another"),
        pytest.param("Call to connect failed", Outcome.UNRECOGNISED, id="a-failure"),
    ],
)
def test_what_rccl_misses_at_its_start_ends_no_run(said: str, outcome: Outcome) -> None:
    found = read(f"n1:9:9 [0] init.cc:213 NCCL WARN {said}\nstep 1 loss 2.3\nstep 2 loss 2.2\n")
    assert found.outcome is outcome


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(
            "(raylet) worker_pool.cc:586: Some workers of the worker process(26154) have not "
            "registered within the timeout. The process is dead, probably it crashed during start.",
            id="a worker of Ray that did not come up",
        ),
        pytest.param(
            "run.pl: 32 / 32 failed, log is in exp/stats/logdir/stats.*.log", id="jobs of Kaldi"
        ),
        pytest.param(
            "Primary job  terminated normally, but 1 process returned\n"
            "a non-zero exit code. Per user-direction, the job has been aborted.\n-----",
            id="a rank under mpirun",
        ),
        pytest.param(
            "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 1.",
            id="a rank that aborts the job",
        ),
        pytest.param(
            "PRTE has lost communication with a remote daemon.\n\n  HNP daemon   : x on node n1",
            id="a node that mpirun lost",
        ),
        pytest.param(
            "OP_REQUIRES failed at mpi_ops.cc:422 : Aborted: Horovod has been shut down.",
            id="Horovod",
        ),
        pytest.param("sbatch: error: something that no signature knows", id="Slurm's command"),
        pytest.param("FATAL:   something that no signature knows", id="apptainer"),
    ],
)
def test_a_launcher_that_reports_an_end_ends_no_sound_log(end: str) -> None:
    assert read(f"building the model\nbuilt\n{end}\n").outcome is Outcome.UNRECOGNISED


def test_a_launcher_that_reports_an_end_and_goes_on_is_not_the_end() -> None:
    lost = "PRTE has lost communication with a remote daemon.\n"
    progress = "".join(f"step {n} loss {9 - n / 10}\n" for n in range(1, 60))
    assert read(lost + progress + "{'train_runtime': 12.1}\n").outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param(
            "loss 2.0\n^C[2024-05-26 15:06:40,046] [INFO] [launch.py:315:sigkill_handler] Killing "
            "subprocess 22523\n",
            "interrupted-by-user",
            id="an echo of Ctrl-C in front of the launcher's line",
        ),
        pytest.param(
            "Error: OCI runtime create failed: stderr: nvidia-container-cli: initalization error: "
            "cuda error: system has unsupported display driver combination\\\\n: unknown "
            "Back-off restarting failed container\n",
            "driver-library-mismatch",
            id="a container that the kubelet starts in vain",
        ),
        pytest.param(
            "Error: OCI runtime create failed: stderr: nvidia-container-cli: initalization error: "
            "driver error: failed to process request\\\\n: unknown Back-off restarting failed "
            "container\n",
            "docker-gpu-runtime-missing",
            id="an old release of the hook, which misspells a word",
        ),
        pytest.param(
            '  File "D:\\env\\Lib\\site-packages\\torch\\__init__.py", line 130, in <module>\n'
            "    raise err\nOSError: [WinError 1114] A dynamic link library (DLL) initialization "
            'routine failed. Error loading "D:\\Anaconda\\envs\\yol\n',
            "torch-import-broken",
            id="a DLL whose path is cut off",
        ),
    ],
)
def test_a_last_line_that_names_the_cause(text: str, condition: str) -> None:
    assert [one.condition for one in read(text).causes][:1] == [condition]


def test_a_line_that_no_exception_ended_with_is_one_level_less_sure() -> None:
    line = "node1:771:801 [1] include/alloc.h:102 NCCL WARN Cuda failure 2 'out of memory'"
    assert read(f"{line}\n").causes[0].confidence == 0.8
    raised = f'Traceback (most recent call last):\n  File "/w/t.py", line 3\nRuntimeError: {line}\n'
    assert read(raised).causes[0].confidence == 0.9


def test_a_request_to_the_driver_that_failed_in_wsl_is_no_missing_driver() -> None:
    """dxgkrnl reports these on machines whose GPU works: -12 is memory, -22 an old request."""
    assert not read("kernel: misc dxg: dxgk: dxgkio_make_resident: Ioctl failed: -12\n").causes
    assert not read("dxgkio_query_adapter_info: Ioctl failed: -22\n").causes


ESCAPED = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 30, in main\n'
    "    x = options['rate']\nKeyError: 'rate'\n"
)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(json.dumps({"level": "ERROR", "message": ESCAPED}), id="a service's JSON"),
        pytest.param(
            'rpc error: desc = "' + ESCAPED.replace("\n", "\\\\n").replace('"', '\\\\\\"') + '"',
            id="escaped twice",
        ),
    ],
)
def test_a_traceback_that_was_written_into_one_line_is_read(line: str) -> None:
    found = read(f"{line}\n")
    assert found.outcome is Outcome.USER_CODE
    assert found.first_error is not None
    assert (found.first_error.file, found.first_error.line) == ("/home/me/train.py", 30)
    assert found.first_error.message == "'rate'"
