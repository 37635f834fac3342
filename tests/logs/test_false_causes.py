"""What a log shows and what did not end the run: warnings, late lines, threads, other bars."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.error_index import Entry
from dsdoctor.logs.error_lookup import REFUSAL
from dsdoctor.logs.knowledge import Answered
from dsdoctor.logs.products import package_of
from dsdoctor.logs.warning_lines import is_warning
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
OWN = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 30, in main\n'
    "    loss = run(batch)\n"
)
DRIVER = (
    "/x/site-packages/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: The NVIDIA "
    "driver on your system is too old (found version 11040).\n  return torch._C._cuda_init() > 0\n"
)
GATED = (
    "/x/site-packages/peft/utils/other.py:7: UserWarning: Unable to fetch remote file:\n"
    "Cannot access gated repo for url https://huggingface.co/org/model/resolve/main/config.json.\n"
    "  warnings.warn(\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    "warning", [pytest.param(DRIVER, id="an old driver"), pytest.param(GATED, id="a gated model")]
)
def test_what_only_warns_does_not_explain_an_exception_that_says_why(warning: str) -> None:
    assert said(warning + OWN + "ValueError: labels of 3 classes, 2 expected\n") == "user-code"
    assert said(warning + OWN + "KeyboardInterrupt\n") == "interrupted-by-user"


def test_what_only_warns_explains_an_exception_that_says_only_what_failed() -> None:
    assert said(DRIVER + OWN + "RuntimeError: No CUDA GPUs are available\n") == "driver-too-old"
    assert said(DRIVER) == "driver-too-old"


def test_pip_goes_on_with_the_conflicts_that_it_names() -> None:
    text = (
        "ERROR: pip's dependency resolver does not currently take into account all the packages "
        "that are installed. This behaviour is the source of the following dependency conflicts.\n"
        "peft 0.14.0 requires accelerate>=0.21.0, but you have accelerate 0.20.0 which is "
        "incompatible.\n"
        "Successfully installed accelerate-0.20.0\nsrun: error: Unable to create step for job 7: "
        "Requested node configuration is not available\n"
    )
    assert [cause.condition for cause in read(text).causes] == ["slurm-request-refused"]


def test_a_warning_of_several_lines_ends_where_the_next_begins() -> None:
    behind = ["/x/a.py:9: UserWarning: leaked semaphores", "  warnings.warn("]
    assert not is_warning("OSError: [Errno 28] No space left on device", [], behind)
    assert is_warning("[2025-01-01 10:00:00,1] [WARNING] [runner.py:9:f] no hostfile", [], [])


def test_what_other_ranks_print_stands_behind_the_rank_that_failed_first() -> None:
    text = (
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/home/me/data.py", line 9, in load\n[rank0]:     read(path)\n'
        '[rank0]:   File "/x/site-packages/datasets/builder.py", line 8, in read\n'
        "[rank0]: OSError: the arrow file was removed\n"
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/home/me/data.py", line 9, in load\n[rank1]:     wait()\n'
        "[rank1]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] "
        "Connection closed by peer [10.0.0.7]:4711\n"
    )
    found = read(text)
    assert found.outcome is not Outcome.CAUSE
    assert found.first_error is not None
    assert found.first_error.rank == 0


def test_a_weak_line_behind_a_failed_import_is_of_another_command() -> None:
    missing = OWN + "ModuleNotFoundError: No module named 'plotlib'\n"
    assert said(missing + "sh: 1: source: not found\n") == "script-module-missing"
    assert said("sh: 1: source: not found\n" + missing) == "env-not-activated"


def test_folders_of_a_project_are_not_the_products_of_the_same_name() -> None:
    for path in ("/w/proj/datasets/load.py", "/w/proj/torch/reader.py", "/w/lightning/module.py"):
        assert package_of(path) == ""
    assert package_of("/w/pytorch/torch/serialization.py") == "torch"
    assert package_of("/w/torch/nn/modules/linear.py") == "torch"
    assert package_of("/w/datasets/src/datasets/load.py") == "datasets"
    text = OWN.replace("train.py", "proj/datasets/mot.py") + "ValueError: no such sequence\n"
    assert said(text) == "user-code"


def test_what_cython_compiled_is_not_the_scripts() -> None:
    assert package_of("python/ray/_raylet.pyx") == "ray"
    text = OWN + '  File "zmq/backend/cython/_zmq.py", line 9, in bind\nValueError: bad address\n'
    compiled = text.replace("zmq/backend/cython/_zmq.py", "python/ray/includes/common.pxi")
    found = read(compiled).first_error
    assert found is not None
    assert found.file == "/home/me/train.py"


def test_a_callback_that_cannot_be_called_is_the_scripts() -> None:
    trainer = '  File "/x/site-packages/transformers/trainer.py", line 8, in train\n    f()\n'
    called = (
        '  File "/x/site-packages/transformers/trainer_callback.py", line 9, in {}\n    f(event)\n'
    )
    words = "AttributeError: 'Mine' object has no attribute 'on_init_end'\n"
    assert said(OWN + trainer + called.format("call_event") + words) == "user-code"
    assert said(OWN + trainer + called.format("on_step_end") + words) == "unrecognised"


def test_source_text_that_ranks_write_into_each_other_is_not_an_exception() -> None:
    text = OWN + "seen: Optional[Data] = None,\nNameError: name 'Data' is not defined\n"
    found = read(text).first_error
    assert found is not None
    assert found.type == "NameError"


def test_tasks_that_slurm_kills_when_their_step_ends_were_not_out_of_memory() -> None:
    watchdog = (
        "[rank3]:[E506 07:18:09.5 ProcessGroupNCCL.cpp:633] [Rank 3] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=2, OpType=BROADCAST, NumelIn=1, Timeout(ms)=600000) "
        "ran for 600012 milliseconds before timing out.\n"
    )
    aborted = "srun: error: n2: task 3: Aborted (core dumped)\n"
    step = "slurmstepd: error: *** STEP 88121.0 ON n1 CANCELLED AT 2025-02-28T09:10:12 ***\n"
    killed = "srun: error: n1: task 1: Killed\n"
    assert said(watchdog + aborted + step + killed) == "nccl-timeout-watchdog"
    assert said(killed + step + aborted) == "host-oom-killed"


def test_exceptions_that_a_run_outlived_for_long_did_not_end_it_however_many() -> None:
    thread = (
        "Exception in thread Thread-3:\nTraceback (most recent call last):\n"
        '  File "/home/me/reader.py", line 8, in run\n    torch.load(path)\n'
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        "directory\n"
    )
    plain = "".join(f"frame {n} rendered in {n % 7} ms\n" for n in range(1500))
    ended = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2024-03-24T19:28:37 DUE TO PREEMPTION ***\n"
    assert said(thread * 6 + plain + ended) == "job-preempted"


def test_bars_of_another_length_count_something_else() -> None:
    bar = " {:3d}%|###   | {}/{} [00:40<04:53,  3.00it/s]\n"
    error = OWN + "ValueError: wrong label\n"
    other = bar.format(90, 9, 10)
    assert said(bar.format(50, 500, 1000) + error + other) == "user-code"
    on = "".join(bar.format(n // 10, n, 1000) for n in range(520, 560))
    assert said(bar.format(50, 500, 1000) + error + on) == "clean"


def test_a_message_of_its_own_counts_where_the_index_names_no_condition() -> None:
    text = OWN + '  File "/x/site-packages/torch/storage.py", line 9, in f\n    g()\n{}\n'
    entry = Entry("torch", "RuntimeError", "torch/storage.py", "f", ("2.4",), (), anchored=True)
    answered = Answered(entry, REFUSAL, "a tensor of another kind", None)

    def index(words: str) -> Diagnosis:
        log = Source("log", data=text.format(words).encode())
        return diagnose([log], KNOWN, answer=lambda error: answered if error.traced else None)

    strong = index("OSError: libcuda.so: cannot open shared object file: No such file or directory")
    assert [one.condition for one in strong.causes] == ["wsl-driver-unavailable"]
    weak = index("RuntimeError: Parent directory /out does not exist.")
    assert weak.causes == ()
    assert weak.explained is not None


def test_the_launchers_own_parser_is_told_from_that_of_a_script() -> None:
    refused = "accelerate launch: error: argument --num_machines: invalid int value: ''\n"
    assert said("usage: accelerate launch [-h]\n" + refused) == "launch-option-refused"
    assert said("usage: run.py [-h]\n" + refused.replace("accelerate launch", "run.py")) == (
        "script-option-refused"
    )


RETRY = (
    "n3:20011:20544 [3] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.4<41611> "
    "failed : Software caused connection abort, retrying\n"
)
DENIED = OWN + "PermissionError: [Errno 13] Permission denied: '/shared/models/last.ckpt'\n"


def test_what_is_tried_again_gives_way_to_every_other_reason() -> None:
    late = "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n"
    assert said(RETRY + DENIED) == "path-not-writable"
    assert said(RETRY + OWN + late) == "rendezvous-timeout"
    assert said(RETRY) == "unrecognised"
    found = read(
        RETRY + OWN + "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:2\n"
    )
    assert found.causes[0].condition == "nccl-ib-or-socket-interface"
    assert found.causes[0].confidence < 0.5  # a hint


def test_a_request_that_the_hubs_client_repeats_is_a_warning() -> None:
    limited = "HTTP Error 429 thrown while requesting GET https://huggingface.co/datasets/a/x\n"
    again = "Retrying in 2s [Retry 2/5].\n"
    failed = OWN + "KeyError: 'answers'\n"
    assert said(limited + failed) == "hub-unreachable"
    assert said(limited + again + failed) == "user-code"
    assert said(limited + again) == "hub-unreachable"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(
            "Epoch 3: {n:3d}%|###| {n}/1000 [03:20<04:05,  2.24it/s, v_num=0, train_loss=0.5{n}]\n",
            id="Lightning",
        ),
        pytest.param(
            "[batch={n}/48000]:\n\t Train time/batch: {n}\n\t Train loss/train/total: 2.{n}\n",
            id="Composer",
        ),
        pytest.param("Train: 7 [{n:4d}/1251 ({n}%)]  Loss: 6.9{n} (6.91)\n", id="timm"),
        pytest.param(
            "Epoch: [7]  [{n:4d}/1251]  eta: 0:12:33  lr: 0.0001  loss: 6.9{n} (7.0)\n",
            id="torchvision",
        ),
        pytest.param(
            "Train: [7/300][{n}/1251]\teta 0:12:33 lr 0.0001\tloss 6.9{n} (6.9)\n", id="Swin"
        ),
        pytest.param(
            "[Rank 0] epoch=0/micro_step={n}/global_step={n}, RunningAvgSamplesPerSec=7.{n}\n",
            id="DeepSpeed",
        ),
    ],
)
def test_steps_of_every_trainer_outlive_what_stands_before_them(step: str) -> None:
    """Within one epoch, too."""
    alarm = "OSError: [Errno 28] No space left on device: '/tmp/x'\n"
    steps = [step.format(n=n) for n in range(1, 90)]
    assert said("".join(steps[:9]) + alarm + "".join(steps[9:])) == "clean"


def test_the_exception_of_a_test_stands_above_what_the_test_had_printed() -> None:
    printed = "------- Captured stderr call -------\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    asserted = (
        "    def test_f():\n>       assert f(3) == 4\nE       AssertionError: assert 3 == 4\n"
    )
    assert said(asserted + printed) in {"user-code", "unrecognised"}
    assert said(asserted.replace("AssertionError: assert 3 == 4", printed[38:-1])) == "gpu-oom"


AT_EXIT = (
    'Traceback (most recent call last):\n  File "/x/deepspeed/ops/transformer/inference/triton/'
    'matmul_ext.py", line 105, in put\n    pickle.dump(self.cache, handle)\n'
    "OSError: [Errno 28] No space left on device\n"
)
BANNER = (
    "W0313 15:48:01.757000 5353 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment "
    "variable for each process to be 1 in default, to avoid your system being overloaded\n"
)


def test_what_python_ignored_in_a_whole_log_is_no_cause() -> None:
    """An excerpt may show nothing else."""
    ignored = "Exception ignored in atexit callback: <function f at 0x7f2d>\n" + AT_EXIT
    assert said(ignored) == "disk-full"
    assert said(BANNER + ignored) == "clean"
    assert said(BANNER + ignored + AT_EXIT) == "unrecognised"  # the head of one was lost


def test_the_help_of_a_command_and_an_environment_are_no_document() -> None:
    option = (
        "  --{n}_steps STEPS\n                        Number of steps after which the model is "
        "saved to the output folder\n"
    )
    folders = "PATH=" + ":".join(f"/opt/soft/gcc-{n}/lib:/opt/soft/share/man" for n in "abcdef")
    text = "====================\n== CUDA ==\n====================\n"
    text += "".join(f"{folders}\n--------------------\n" for _ in range(12))
    text += "".join(option.format(n=n) for n in range(80))
    ended = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-02T17:40:45 DUE TO TIME LIMIT ***\n"
    assert said(text + ended) == "job-time-limit"


def test_a_script_that_does_not_compile_is_started_below_what_ran() -> None:
    """Two ranks write into each other, so their exception has no name of its own."""
    refused = (
        '  File "train.py", line 232\n  File "train.py", line 232\n'
        '    optim="adamw"          # 8 bit\n        ^\n^\n'
        "SyntaxErrorSyntaxError: : invalid syntaxinvalid syntax\n"
    )
    full = OWN + "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    assert said(full + refused) == "user-code"
    assert said(refused + full) == "cuda-kernel-failed"


def test_nothing_goes_on_while_a_launcher_ends_the_ranks() -> None:
    """The stacks that they dump meanwhile may be longer than any other gap."""
    failed = "".join(f"[rank0]: {line}\n" for line in OWN.splitlines()) + (
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:230, unhandled "
        "cuda error\n[rank0]: ncclUnhandledCudaError: Call to CUDA function failed.\n"
    )
    killing = "[INFO] [launch.py:335:sigkill_handler] Killing subprocess 3281381\n"
    stacks = "frame #7: clone + 0x43 (0x7f in /lib/libc.so.6)\n" * 5000
    ended = "['python', 'train.py'] exits with return code = -11\n"
    assert said(failed + killing + stacks + ended) == "nccl-unhandled-cuda-error"


def test_a_pickle_of_the_scripts_own_is_no_file_of_weights() -> None:
    own = OWN + "EOFError: Ran out of input\n"
    weights = own.replace("loss = run(batch)", "state = torch.load(path)")
    assert said(own) == "user-code"
    assert said(weights) == "weights-file-corrupt"


def test_a_config_that_is_neither_a_file_nor_base64_cannot_be_read() -> None:
    frames = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 3, in <module>\n'
        '  File "/x/site-packages/deepspeed/runtime/config.py", line 661, in __init__\n'
        '  File "/usr/lib/python3.10/base64.py", line 87, in b64decode\n'
    )
    assert said(frames + "binascii.Error: Incorrect padding\n") == "ds-config-unreadable"


def test_an_exception_in_the_middle_of_a_sentence_is_one_level_less_sure() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert read(oom + "\n").causes[0].confidence == 0.9
    assert read(f"the worker died with {oom}\n").causes[0].confidence == 0.8


NO_NVCC = (
    "torch version .................... 1.10.0a0+git539d476\n"
    "torch cuda version ............... {cuda}\n"
    "torch hip version ................ {hip}\n"
    "nvcc version .....................  [FAIL] cannot find CUDA_HOME via "
    "torch.utils.cpp_extension.CUDA_HOME=None\n"
)


def test_a_torch_for_rocm_needs_no_nvcc() -> None:
    assert said(NO_NVCC.format(cuda="None", hip="5.1.20531-cacfa990")) == "clean"
    assert said(NO_NVCC.format(cuda="11.3", hip="None")) == "cuda-toolkit-missing"


def test_what_somebody_ran_is_no_advice_of_a_program() -> None:
    told = "After I did `pip install deepspeed` and ran ds_report, it shows errors.\n"
    assert said(f"{told}ValueError: x\n") != "deepspeed-missing"
    assert said("ImportError: requires DeepSpeed: `pip install deepspeed`\n") == "deepspeed-missing"


def test_code_that_torchscript_wrote_is_for_this_gpu() -> None:
    failed = OWN + "RuntimeError: CUDA driver error: a PTX JIT compilation failed\n"
    assert said(failed) == "gpu-arch-unsupported"
    assert said("model = torch.jit.script(Model()).cuda()\n" + failed) != "gpu-arch-unsupported"


def test_what_a_child_process_printed_is_not_a_damaged_file() -> None:
    """A warning on the standard output of a child from which its parent reads a pickle."""
    broken = "_pickle.UnpicklingError: invalid load key, 'W'.\n"
    answer = "    answer = pickle.loads(done.stdout)\n"
    assert "weights-file-corrupt" not in {
        one.condition for one in read(OWN + answer + broken).causes
    }
    loaded = "    state = torch.load(path)\n"
    assert "weights-file-corrupt" in {one.condition for one in read(OWN + loaded + broken).causes}


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param("    message = await socket.recv_pyobj()\n", id="of pyzmq"),
        pytest.param("    return _ForkingPickler.loads(buf.getbuffer())\n", id="of a pipe"),
    ],
)
def test_a_message_that_is_no_pickle_is_not_a_damaged_file(frame: str) -> None:
    broken = "_pickle.UnpicklingError: invalid load key, 'W'.\n"
    causes = {one.condition for one in read(OWN + frame + broken).causes}
    assert "weights-file-corrupt" not in causes


def test_a_backend_that_vllm_does_not_choose_is_no_failure() -> None:
    note = "INFO 06-25 15:26:09 selector.py:131] Cannot use FlashAttention-2 backend for Volta and Turing GPUs.\n"
    later = "INFO 06-25 15:26:09 selector.py:40] Using XFormers backend.\n"
    failed = OWN + "ValueError: x\n"
    assert said(note + later + failed) == said(failed)
    real = "RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n"
    assert said(note + OWN + real) == "flash-attn-needs-ampere"


def test_the_fabric_manager_of_a_machine_with_geforce_cards_is_not_needed() -> None:
    failed = "systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited\n"
    failed += "systemd[1]: Failed to start NVIDIA fabric manager service.\n"
    for card, hint in (("GeForce ...", "disable --now"), ("H100 80GB HBM3", "restart")):
        (cause,) = read(f"{failed}|   0  NVIDIA {card}  Off  | 00000000:05:00.0 Off |\n").causes
        assert hint in cause.hint
