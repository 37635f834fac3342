"""What the field guides ask of `diagnose`, row by row, in the words of real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Cause, Diagnosis, Outcome
from tests.support.diagnosing import diagnose_command

SIGNATURES = signatures_of(packs.load(builtin_only=True))


def read(*texts: str, expect: tuple[str, ...] = ()) -> Diagnosis:
    sources = [Source(name=f"{n}.log", data=text.encode(), rank=n) for n, text in enumerate(texts)]
    return diagnose(sources, SIGNATURES, expect=expect)


def cause(*texts: str) -> Cause:
    return read(*texts).causes[0]


def trace(error: str, *frames: tuple[str, str, str]) -> str:
    rows = "".join(f'  File "{f}", line 7, in {name}\n    {code}\n' for f, name, code in frames)
    return f"Traceback (most recent call last):\n{rows}{error}\n"


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 31.74 GiB of which 1.12 GiB is free."
)
WATCHDOG = (
    "[rank{0}]:[E1121 07:08:09.1 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=1800000) ran for 1800021 milliseconds before timing out.\n"
)

# -- A8: version mismatch, return code -9, a failed build, out of memory -------------------------


def test_guide_a8_version_mismatch() -> None:
    found = cause(
        "[WARNING] DeepSpeed Op Builder: Installed CUDA version 11.5 does not match torch 12.4\n"
    )
    assert found.condition == "cuda-toolkit-mismatch"
    assert "11.5" in found.message
    assert "12.4" in found.message
    assert "install-cuda-toolkit" in found.fixes


def test_guide_a8_return_code_minus_9_is_host_memory_not_the_batch() -> None:
    line = "[ERROR] [launch.py:324:sigkill_handler] ['python', 'train.py'] exits with return code = -9\n"
    found = cause(line)
    assert found.condition == "host-oom-killed"
    assert "host memory" in found.message
    assert "offload" in found.hint
    assert "worker" in found.hint
    assert "batch" not in found.hint


def test_guide_a8_a_failed_build_and_what_lies_beneath() -> None:
    line = "Building extension module cpu_adam... FAILED\n"
    assert cause(line).condition == "cpu-adam-unbuilt"
    below = cause("/bin/sh: 1: g++: not found\nninja: build stopped: subcommand failed.\n" + line)
    assert below.condition == "jit-build-compiler-missing"


def test_guide_a8_out_of_memory_on_the_gpu() -> None:
    assert cause("CUDA out of memory\n").condition == "gpu-oom"
    assert cause(f"{OOM}\n").condition == "gpu-oom"


# -- B9: the run hangs after evaluation ----------------------------------------------------------


def test_guide_b9_a_watchdog_is_a_time_out() -> None:
    found = cause(WATCHDOG.format(5, 120, "ALLREDUCE"))
    assert found.condition == "nccl-timeout-watchdog"
    assert found.evidence[0].rank == 5
    assert "ALLREDUCE number 120" in found.message
    assert "agree" not in found.message


@pytest.mark.parametrize("files", [1, 2])
def test_guide_b9_ranks_that_disagree_are_named(files: int) -> None:
    texts = [WATCHDOG.format(0, 412, "ALLREDUCE"), WATCHDOG.format(1, 411, "_ALLGATHER_BASE")]
    found = cause(*(texts if files == 2 else ["".join(texts)]))
    assert found.condition == "nccl-timeout-watchdog"
    assert "rank 0 in ALLREDUCE 412" in found.message
    assert "rank 1 in _ALLGATHER_BASE 411" in found.message


def test_guide_b9_the_rank_that_disagrees_is_named_below_many_that_agree() -> None:
    texts = [WATCHDOG.format(rank, 412, "ALLREDUCE") * 2 for rank in range(64) if rank != 37]
    found = cause("".join([*texts, WATCHDOG.format(37, 412, "_ALLGATHER_BASE")]))
    assert "ranks 0, 1, 2, 3, … in ALLREDUCE 412" in found.message
    assert "rank 37 in _ALLGATHER_BASE 412" in found.message
    assert [line.rank for line in found.evidence[:2]] == [0, 37]


def test_guide_b9_ranks_in_the_same_collective_do_not_disagree() -> None:
    found = cause(WATCHDOG.format(0, 9, "ALLREDUCE"), WATCHDOG.format(1, 9, "ALLREDUCE"))
    assert "agree" not in found.message


# -- B12: the decision flow ----------------------------------------------------------------------

FLOW = {
    "oom": (f"[rank3]: {OOM}", "gpu-oom"),
    "nccl": (WATCHDOG.format(5, 1, "ALLREDUCE"), "nccl-timeout-watchdog"),
    "load": (
        "ValueError: Unable to find latest file at out/latest, if trying to load latest checkpoint please ensure this file exists",
        "checkpoint-mismatch",
    ),
    "network": (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "port-in-use",
    ),
}


@pytest.mark.parametrize("branch", FLOW)
def test_guide_b12_every_branch_of_the_flow_ends_at_its_page(
    branch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, condition = FLOW[branch]
    path = tmp_path / "x.log"
    path.write_text(text + "\n")
    result = diagnose_command(monkeypatch, path)
    assert result.status == 1
    assert result.out.startswith(f"CAUSE {condition} ")
    assert f"`dsdoctor explain {condition}`" in result.out


def test_guide_b12_the_time_out_of_others_follows_from_the_first_death() -> None:
    found = cause(WATCHDOG.format(0, 9, "ALLREDUCE"), f"[rank1]: {OOM}\n")
    assert found.condition == "gpu-oom"
    assert found.masks == ("nccl-timeout-watchdog",)


# -- C1: out of memory although DeepSpeed is on --------------------------------------------------

SITE = "/opt/venv/lib/python3.11/site-packages"
CASES = {
    "before DeepSpeed partitioned it": (
        ("train.py", "main", "model = AutoModelForCausalLM.from_pretrained(name).to(device)"),
        (f"{SITE}/torch/nn/modules/module.py", "_apply", "module._apply(fn)"),
        (f"{SITE}/torch/nn/modules/module.py", "convert", "return t.to(device, dtype)"),
    ),
    "during DeepSpeed's setup": (
        (f"{SITE}/deepspeed/__init__.py", "initialize", "engine = DeepSpeedEngine(args=args)"),
        (f"{SITE}/deepspeed/runtime/engine.py", "__init__", "self._configure_optimizer(optimizer)"),
        (f"{SITE}/deepspeed/runtime/engine.py", "_configure_optimizer", "self._configure_zero_optimizer(o)"),
        (f"{SITE}/deepspeed/runtime/zero/stage_1_and_2.py", "__init__", "self.initialize_optimizer_states()"),
    ),
    "in attention": (
        (f"{SITE}/torch/nn/modules/module.py", "_call_impl", "return forward_call(*args)"),
        ("modeling_gpt2.py", "_attn", "attn_weights = torch.matmul(query, key.transpose(-1, -2))"),
    ),
    "in the logits or the loss": (
        (f"{SITE}/torch/nn/functional.py", "cross_entropy", "return torch._C._nn.cross_entropy_loss("),
    ),
    "in the backward pass": (
        (f"{SITE}/deepspeed/runtime/engine.py", "backward", "loss.backward(**kwargs)"),
        (f"{SITE}/torch/autograd/graph.py", "_engine_run_backward", "return engine.run_backward("),
    ),
    "in the forward pass": (
        (f"{SITE}/torch/nn/modules/module.py", "_call_impl", "return forward_call(*args)"),
        (f"{SITE}/torch/nn/modules/linear.py", "forward", "return F.linear(input, self.weight)"),
    ),
    "in the optimizer step": (
        (f"{SITE}/torch/optim/adamw.py", "_init_group", 'state["exp_avg"] = torch.zeros_like(p)'),
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", CASES)
@pytest.mark.parametrize("prefix", ["", "[rank1]: ", "node-a: [rank1]: "])
def test_guide_c1_causes_of_out_of_memory_are_told_apart(words: str, prefix: str) -> None:
    text = trace(OOM, *CASES[words])
    found = cause("".join(prefix + line + "\n" for line in text.splitlines()))
    assert found.condition == "gpu-oom"
    assert words in found.message


def test_guide_c1_nothing_is_claimed_where_the_log_does_not_allow_it() -> None:
    assert cause(f"{OOM}\n").message == cause("RuntimeError: CUDA out of memory.\n").message
    assert not any(words in cause(f"{OOM}\n").message for words in CASES)


# -- C2: started as `python train.py` ------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("ModuleNotFoundError: No module named 'mpi4py'", id="no mpi4py"),
        pytest.param(
            "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
            id="no process group",
        ),
        pytest.param(
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
            id="no RANK",
        ),
        pytest.param("KeyError: 'LOCAL_RANK'", id="no LOCAL_RANK"),
    ],
)
def test_guide_c2_launched_without_deepspeed(line: str) -> None:
    found = cause(line + "\n")
    assert found.condition == "launched-without-deepspeed"
    assert "`deepspeed train.py`" in found.hint


# -- C5: was DeepSpeed really active? ------------------------------------------------------------

HEAD = """\
[2026-01-05 08:00:00,123] [INFO] [launch.py:256:main] dist_world_size=4
[2026-01-05 08:00:01,123] [INFO] [config.py:1000:print]   bfloat16_enabled ............. True
[2026-01-05 08:00:01,123] [INFO] [config.py:1000:print]   world_size ................... 4
[2026-01-05 08:00:01,123] [INFO] [config.py:1000:print]   zero_config .................. stage=3 contiguous_gradients=True offload_param=None offload_optimizer=DeepSpeedZeroOffloadOptimizerConfig(device=<OffloadDeviceEnum.cpu: 'cpu'>, nvme_path=None)
[2026-01-05 08:00:01,123] [INFO] [config.py:1000:print]   zero_optimization_stage ...... 3
"""


def states(text: str, *names: str) -> list[str]:
    return [answer.state for answer in read(text, expect=names).expectations]


def test_guide_c5_proved_and_refuted() -> None:
    assert states(HEAD, "zero3", "offload", "4gpus", "bf16") == ["proved"] * 4
    assert states(HEAD, "zero2", "8gpus", "fp16") == ["refuted", "refuted", "not-shown"]


def test_guide_c5_every_answer_shows_its_line() -> None:
    for answer in read(HEAD, expect=("zero3", "offload", "4gpus", "zero2")).expectations:
        assert answer.evidence is not None
        assert answer.evidence.text in HEAD


@pytest.mark.parametrize(
    ("line", "name", "state"),
    [
        ("zero_optimization_stage ...... ZeroStageEnum.weights", "zero3", "proved"),
        ("zero_optimization_stage ...... ZeroStageEnum.gradients", "zero3", "refuted"),
        ("[Rank 0] Creating torch.bfloat16 ZeRO stage 3 optimizer", "zero3", "proved"),
        ("[Rank 0] Creating torch.bfloat16 ZeRO stage 3 optimizer", "bf16", "proved"),
        ("[Rank 0] Creating fp16 ZeRO stage 2 optimizer", "zero2", "proved"),
        pytest.param(
            "Detected DeepSpeed ZeRO-3: activating zero.init() for this model",
            "zero3",
            "proved",
            id="DeepSpeed's integration detects ZeRO-3",
        ),
        ("Stage 3 initialize [begin]", "zero2", "refuted"),
        ("[stage_1_and_2.py:149:__init__] CPU Offload: False", "offload", "refuted"),
        pytest.param(
            "Adam Optimizer #0 is created with AVX512 arithmetic capability.",
            "offload",
            "proved",
            id="an optimizer on the CPU",
        ),
        pytest.param(
            "zero_config .... stage=2 offload_param=None offload_optimizer=None",
            "offload",
            "refuted",
            id="a ZeRO config without offload",
        ),
        ("float16_config ...... enabled=True auto_cast=False", "fp16", "proved"),
        ("float16_config ...... enabled=False auto_cast=False", "fp16", "refuted"),
        pytest.param(
            "bfloat16_config ..... enabled=True immediate_grad_update=False",
            "bf16",
            "proved",
            id="bfloat16 is enabled",
        ),
        pytest.param(
            "bfloat16_config ..... enabled=True immediate_grad_update=False",
            "fp16",
            "not-shown",
            id="bfloat16 does not show that fp16 is off",
        ),
        ("DeepSpeed info: version=0.14.2, git-hash=unknown", "deepspeed", "proved"),
        ("step 1 loss 2.0", "deepspeed", "not-shown"),
        ("NCCL INFO comm 0x5 rank 0 nranks 4 cudaDev 0 - Init COMPLETE", "4gpus", "proved"),
    ],
)
def test_guide_c5_wordings(line: str, name: str, state: str) -> None:
    assert states(line + "\n", name) == [state]


def test_guide_c5_ranks_on_the_cpu_are_no_gpus() -> None:
    text = "Setting accelerator to CPU. If you have GPU\ndist_world_size=2\n"
    answer = read(text, expect=("2gpus",)).expectations[0]
    assert answer.state == "refuted"
    assert "on the CPU" in answer.message


def test_guide_c5_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    path.write_text(HEAD)
    result = diagnose_command(monkeypatch, path, "--expect", "zero3, offload,4GPUs")
    assert result.status == 0
    assert [row.split(",")[0] for row in result.out.splitlines() if row.startswith("expect ")] == [
        "expect zero3: proved",
        "expect offload: proved",
        "expect 4gpus: proved",
    ]


# -- D3, E6 --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "ModuleNotFoundError: No module named 'deepspeed'",
        "ImportError: No module named 'deepspeed'",
        "bash: deepspeed: command not found",
    ],
)
def test_guide_d3_deepspeed_is_missing(line: str) -> None:
    found = cause(line + "\n")
    assert found.condition == "deepspeed-missing"
    assert "pip install" in found.hint


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("epoch 1 loss = nan", id="a line of a script"),
        pytest.param("{'loss': nan, 'grad_norm': nan}", id="a line of transformers"),
        pytest.param(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            id="the smallest loss scale",
        ),
    ],
)
def test_guide_d3_loss_is_nan(line: str) -> None:
    found = cause(line + "\n")
    assert found.condition == "training-diverged"
    assert "initial_scale_power" in found.hint


@pytest.mark.parametrize(
    ("line", "condition"),
    [
        ("torch.cuda.is_available() = False", "no-gpu-visible"),
        ("RuntimeError: No CUDA GPUs are available", "no-gpu-visible"),
        ("AssertionError: Torch not compiled with CUDA enabled", "cpu-only-torch"),
        ("ModuleNotFoundError: No module named 'torch'", "torch-missing"),
    ],
)
def test_guide_e6_no_gpu_and_no_torch(line: str, condition: str) -> None:
    found = cause(line + "\n")
    assert found.condition == condition
    assert found.hint


def test_guide_e6_a_missing_torch_names_the_environment() -> None:
    assert "environment" in cause("ModuleNotFoundError: No module named 'torch'\n").hint


def test_guide_e6_clean_logs_stay_clean() -> None:
    assert read("torch.cuda.is_available() = True\n").outcome is Outcome.CLEAN
