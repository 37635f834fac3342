"""What schedulers refuse, what accelerators other than NVIDIA's report, and how a report ends."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

ROWS = signatures_of(packs.load(builtin_only=True))


def read(text: str) -> Diagnosis:
    return diagnose([Source("train.log", data=text.encode())], ROWS)


def named(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else str(found.outcome)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "sbatch: error: Batch job submission failed: Requested node configuration is not "
            "available\n",
            id="more than a node has",
        ),
        pytest.param(
            "sbatch: error: Batch job submission failed: Invalid account or account/partition "
            "combination specified\n",
            id="an account that may not",
        ),
        pytest.param(
            "srun: error: Unable to create step for job 16: Invalid generic resource (gres) "
            "specification\n",
            id="a step within a job",
        ),
        pytest.param(
            "Traceback (most recent call last):\n"
            '  File "/e/lib/python3.11/site-packages/submitit/core/utils.py", line 308, in result\n'
            "    raise FailedJobError(stderr) from subprocess_error\n"
            "submitit.core.utils.FailedJobError: sbatch: error: Jobs here need --account\n",
            id="submitit quotes a site's filter",
        ),
    ],
)
def test_what_slurm_refuses_was_not_started(text: str) -> None:
    assert named(text) == "slurm-request-refused"


@pytest.mark.parametrize(
    "reason",
    [
        pytest.param("Unable to contact slurm controller (connect failure)", id="no controller"),
        pytest.param("Socket timed out on send/recv operation", id="a busy controller"),
    ],
)
def test_a_controller_that_does_not_answer_refuses_nothing(reason: str) -> None:
    assert named(f"sbatch: error: Batch job submission failed: {reason}\n") != (
        "slurm-request-refused"
    )


def test_a_step_of_a_job_that_ends_is_not_refused() -> None:
    text = (
        "slurmstepd: error: *** JOB 16 ON n3 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***\n"
        "srun: error: Unable to create step for job 16: Job/step already completing or completed\n"
    )
    assert named(text) == "job-time-limit"


def test_a_reason_that_is_not_specified_stands_in_the_line_above() -> None:
    found = read(
        "sbatch: error: a GPU partition takes no job without GPUs\n"
        "sbatch: error: Batch job submission failed: Unspecified error\n"
    )
    assert found.causes[0].condition == "slurm-request-refused"
    assert "line above" in found.causes[0].message


def test_an_option_that_srun_does_not_know_is_refused() -> None:
    text = (
        "srun: unrecognized option '--container-image'\nTry \"srun --help\" for more information\n"
    )
    assert named(text) == "launch-option-refused"


FAULT = (
    "[Error]: The vector core execution is abnormal. \n"
    "        Rectify the fault based on the error information in the ascend log.\n"
    "EH9999: Inner Error!\n"
)


def test_the_watchdog_of_hccl_reports_a_kernel_that_failed() -> None:
    text = (
        "what():  [Rank 5] HCCL watchdog thread terminated with exception:\n"
        "[ERROR] 2025-12-12-12:10:10 (PID:324, Device:5, RankID:-1) ERR02005 DIST internal error\n"
    )
    assert named(text + FAULT) == "npu-kernel-failed"
    assert named(FAULT + text) == "npu-kernel-failed"


def test_an_operator_that_refuses_its_arguments_is_named() -> None:
    found = read("RuntimeError: call aclnnCast failed, detail:EZ9999: Inner Error!\n")
    assert found.causes[0].condition == "npu-kernel-failed"
    assert "`aclnnCast`" in found.causes[0].message


def test_a_rank_of_hccl_that_waits_names_hccl() -> None:
    text = (
        "EI0002: The wait execution of the Notify register times out. Reason: The Notify register "
        "has not received the Notify record from remote rank [4294967295].\n"
    )
    assert named(text) == "hccl-error"


def test_an_amd_gpu_that_the_build_has_no_code_for() -> None:
    text = (
        'guarantee(false && "hipErrorNoBinaryForGpu: Unable to find code object for all GPUs!")\n'
    )
    assert named(text) == "gpu-arch-unsupported"


def test_windows_could_not_commit_the_memory() -> None:
    text = (
        "OSError: [WinError 1455] The paging file is too small for this operation to complete. "
        'Error loading "D:\\env\\lib\\site-packages\\torch\\lib\\cublas64_11.dll"\n'
    )
    assert named(text) == "host-oom-killed"
    assert named(text.replace("The paging file is too small", "页面文件太小")) == "host-oom-killed"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "*** SIGSEGV (@0x0) received by PID 26955 (TID 0x7f28) from PID 0; stack trace: ***",
            id="glog",
        ),
        pytest.param("*** SIGABRT received at time=1734086759 ***", id="abseil"),
    ],
)
def test_a_handler_of_signals_reports_a_crash(line: str) -> None:
    assert named(f"(RayTrainWorker pid=7315) {line}\n") == "native-crash"


PYXIS = (
    "22: slurmstepd: error: pyxis: container start failed with error code: 1\n"
    "22: slurmstepd: error: pyxis: printing enroot log file:\n"
)


def test_what_a_hook_prints_did_not_happen_to_the_job() -> None:
    crash = "22: slurmstepd: error: pyxis:      34 Segmentation fault      (core dumped) | pwck\n"
    hook = (
        "22: slurmstepd: error: pyxis:     nvidia-container-cli: ldcache error: process "
        "/sbin/ldconfig terminated with signal 9\n"
    )
    assert named(PYXIS + crash) == "container-not-started"
    assert named(PYXIS + crash + hook) == "container-not-started"
    assert "ldcache error" in read(PYXIS + hook).causes[0].message


def test_a_swap_file_of_another_size_is_no_setting() -> None:
    text = (
        "/nvme/x.tensor.swp: buffer nbytes != file bytes 28824000 != 28311552\n"
        "python: deepspeed_py_aio_handle.cpp:223: int deepspeed_aio_handle_t::pread(): Assertion "
        "`static_cast<long long int>(buffer.nbytes()) == num_file_bytes' failed.\n"
    )
    assert named(text) == "storage-io-error"


def test_submitit_says_that_its_job_was_preempted() -> None:
    text = "submitit WARNING (2022-07-12 04:18:45,881) - Caught signal SIGHUP on n7: this job is preempted.\n"
    assert named(text) == "job-preempted"


def test_a_client_that_still_waits_for_the_store_is_not_healthy() -> None:
    waited = (
        "[W715 09:24:02.297 TCPStore.cpp:330] [c10d] TCP client failed to connect/validate to host "
        "head:51216 - retrying (try=0, timeout=300000ms, delay=59547ms): The client socket has "
        "timed out after 300000ms while trying to connect to (head, 51216).\n"
    )
    assert read(waited).outcome is Outcome.UNRECOGNISED
    steps = "".join(f"step {n}/100 loss: 2.{n}\n" for n in range(1, 30))
    assert read(waited + steps).outcome is Outcome.CLEAN


def test_a_compilers_error_at_the_end_is_a_failure() -> None:
    said = read(
        "csrc/linear.hip:50:5: error: no matching function for call to 'f'\n   50 |  f(x)\n"
    )
    assert said.outcome is Outcome.UNRECOGNISED


def test_a_traceback_with_other_lines_in_it_and_no_end_breaks_off() -> None:
    text = (
        "2023-11-09 21:39:52.9: E xla/xla_util.cc:90] OP_REQUIRES failed\n"
        "Traceback (most recent call last):\n"
        '  File "run_clm.py", line 616, in <module>\n'
        "2023-11-09 21:39:52.9: E xla/xla_util.cc:90] StackTrace:\n"
        "2023-11-09 21:39:52.9: E xla/xla_util.cc:90] *** Begin stack trace ***\n"
        "2023-11-09 21:39:52.9: E xla/xla_util.cc:90] tsl::CurrentStackTrace()\n"
        "2023-11-09 21:39:52.9: E xla/xla_util.cc:90] xla::Execute()\n"
    )
    assert read(text).outcome is Outcome.UNRECOGNISED
    assert read(text + "ValueError: x\n").outcome is not Outcome.CLEAN


def test_a_program_of_the_environment_is_not_the_users_script() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/conda/envs/clg/bin/swift", line 8, in <module>\n'
        "    sys.exit(cli_main())\n"
        '  File "/home/me/conda/envs/clg/lib/python3.10/site-packages/swift/cli/main.py", line 62, in cli_main\n'
        "    path = find_spec(mapping[name]).origin\n"
        "KeyError: 'grpo'\n"
    )
    found = read(text)
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.raised_by is not None
    assert found.raised_by.product == "swift"
    own = text.replace("/home/me/conda/envs/clg/bin/swift", "/home/me/tune.py")
    assert read(own.replace("swift", "trainkit")).outcome is Outcome.USER_CODE


def test_a_title_whose_traceback_breaks_off_does_not_say_who_raised_it() -> None:
    title = "AttributeError: 'NoneType' object has no attribute 'available_swap_in_buffers'\n\n"
    frames = (
        'File "train.py", line 9, in step\n    loss = engine(batch)\n'
        '  File "/e/lib/python3.7/site-packages/deepspeed/runtime/zero/stage3.py", line 1413, in _hook\n'
        "    self.pre_sub_module_forward_function(module)\n"
    )
    assert read(title).outcome is Outcome.USER_CODE
    assert read(title + frames).outcome is Outcome.UNRECOGNISED


def test_a_chat_template_rejects_the_scripts_conversation() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 183, in preprocess\n'
        "    prompt = tokenizer.apply_chat_template(conversation, tokenize=False)\n"
        '  File "/e/lib/python3.9/site-packages/jinja2/environment.py", line 939, in handle_exception\n'
        "    raise rewrite_traceback_stack(source=source)\n"
        '  File "<template>", line 1, in top-level template code\n'
        '  File "/e/lib/python3.9/site-packages/jinja2/sandbox.py", line 394, in call\n'
        "    return __context.call(__obj, *args, **kwargs)\n"
        '  File "/e/lib/python3.9/site-packages/transformers/tokenization_utils_base.py", line 1771, in raise_exception\n'
        "    raise TemplateError(message)\n"
        "jinja2.exceptions.TemplateError: the roles of a conversation must alternate\n"
    )
    assert read(text).outcome is Outcome.USER_CODE


def test_an_optimizer_state_of_other_parameters_names_them() -> None:
    for product in ("torch", "bitsandbytes"):
        found = read(
            "Traceback (most recent call last):\n"
            f'  File "/e/lib/python3.9/site-packages/{product}/optim/optimizer.py", line 149, in load_state_dict\n'
            "    raise ValueError(\n"
            "ValueError: loaded state dict contains a parameter group that doesn't match the size of "
            "optimizer's group\n"
        )
        assert found.causes[0].condition == "checkpoint-mismatch"
        assert "does not belong to the parameters" in found.causes[0].message


def test_pmix_that_cannot_connect_is_not_a_missing_launcher() -> None:
    began = "Not using the DeepSpeed or torch.distributed launchers, attempting to detect MPI environment...\n"
    fatal = "*** An error occurred in MPI_Init_thread\n*** MPI_ERRORS_ARE_FATAL (processes abort,\n"
    assert named(began + fatal) == "launched-without-deepspeed"
    pmix = "[node-2:04757] PMIX ERROR: ERROR STRING NOT FOUND in file ptl_tcp.c at line 790\n"
    assert named(began + pmix + fatal) != "launched-without-deepspeed"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "test.c\nLINK : fatal error LNK1181: cannot open input file 'aio.lib'\n"
            "test.c\nLINK : fatal error LNK1181: cannot open input file 'cufile.lib'\n"
            "W0705 redirects.py:29] NOTE: Redirects are currently not supported in Windows\n",
            id="DeepSpeed tries two libraries",
        ),
        pytest.param(
            "A matching Triton is not available, some optimizations will not be enabled.\n"
            "Error caught was: DLL load failed while importing libtriton: not found\n"
            "bin C:\\Python310\\lib\\site-packages\\bitsandbytes\\libbitsandbytes_cuda121.dll\n",
            id="xformers goes on",
        ),
    ],
)
def test_what_windows_lacks_and_a_program_only_tried_is_no_cause(text: str) -> None:
    assert named(text) != "unsupported-on-windows"


def test_the_same_library_of_a_build_that_failed_is_the_cause() -> None:
    text = (
        "test.c\nLINK : fatal error LNK1181: cannot open input file 'aio.lib'\n"
        "error: subprocess-exited-with-error\n"
    )
    assert named(text) == "unsupported-on-windows"


def test_a_container_that_lost_its_gpu_in_a_sentence() -> None:
    text = "After few hours nvidia-smi gives **failed to initialize nvml unknown error**\n"
    assert named(text) == "container-lost-gpu"


def test_a_hook_that_found_no_driver_is_not_a_missing_hook() -> None:
    found = read(
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.\n"
    )
    assert found.causes[0].condition == "docker-gpu-runtime-missing"
    assert found.causes[0].message.endswith("on the host: nvml error: driver not loaded")
    assert "nvidia-smi" in str(found.causes[0].hint)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(
            "ERROR 2021-05-24 17:17:14,611 launch_utils.py:545] ABORT!!! Out of all 4 trainers, "
            "the trainer process with rank=[3] was aborted. Please check its log.",
            id="Paddle's launcher",
        ),
        pytest.param("Error executing job with overrides: ['model=gpt']", id="Hydra"),
        pytest.param(
            "F0925 14:07:56.489186 14091 math_functions.cu:79] Check failed: status == 0 (74 vs. 0)",
            id="glog's fatal message",
        ),
    ],
)
def test_a_log_that_ends_with_what_failed_is_not_clean(last: str) -> None:
    assert read(f"epoch 1\n{last}\n").outcome is Outcome.UNRECOGNISED
