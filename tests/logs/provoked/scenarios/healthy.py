"""Runs that went well, with the warnings that people blame; and failures of the user's own code."""

from __future__ import annotations

from ._bench import TRAIN, Bench, scenario
from ._scripts import config, gloo, train


def _stage(bench: Bench, stage: int, **top: object) -> int:
    bench.write("ds_config.json", config({**top, "zero_optimization": {"stage": stage}}))
    return bench.deepspeed(train(), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("none", r"training done", warm=False)
def ok_first_run_builds_ops(bench: Bench) -> int:
    """The first run on a machine: DeepSpeed compiles its CPU ops, then trains."""
    return _stage(bench, 0)


@scenario("none", r"training done")
def ok_stage0(bench: Bench) -> int:
    """A clean two-rank run without ZeRO."""
    return _stage(bench, 0)


@scenario("none", r"training done")
def ok_stage1(bench: Bench) -> int:
    """A clean two-rank ZeRO-1 run."""
    return _stage(bench, 1)


@scenario("none", r"training done")
def ok_stage2_bf16(bench: Bench) -> int:
    """A clean two-rank ZeRO-2 run in bf16."""
    return _stage(bench, 2, bf16={"enabled": True})


@scenario("none", r"training done")
def ok_stage3(bench: Bench) -> int:
    """A clean two-rank ZeRO-3 run."""
    return _stage(bench, 3)


@scenario("none", r"training done")
def ok_stage2_ignores_offload_param(bench: Bench) -> int:
    """ZeRO-2 with offload_param, which DeepSpeed silently ignores."""
    bench.write(
        "ds_config.json", config(zero_optimization={"stage": 2, "offload_param": {"device": "cpu"}})
    )
    return bench.deepspeed(train(), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("none", r"Unable to find hostfile[\s\S]*training done")
def ok_hostfile_not_found(bench: Bench) -> int:
    """The hostfile named on the command line is not there: a warning, then a local run."""
    bench.write("ds_config.json", config())
    args = ("--deepspeed", "--deepspeed_config", "ds_config.json")
    return bench.deepspeed(train(), *args, launch=["--hostfile", "/job/hostfile"])


@scenario("none", r"training done")
def ok_torchrun_deepspeed(bench: Bench) -> int:
    """The same script under torchrun."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 1}))
    return bench.torchrun(train(), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("none", r"rank 1\] step 2")
def ok_torchrun_ddp(bench: Bench) -> int:
    """Plain torch DDP under torchrun."""
    return bench.torchrun(gloo())


@scenario("none", r"training done")
def ok_checkpoint_round_trip(bench: Bench) -> int:
    """ZeRO-2 training that saves and loads a checkpoint."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 2}))
    end = "engine.save_checkpoint('ckpt')\nengine.load_checkpoint('ckpt')"
    return bench.deepspeed(train(end=end), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario(
    "unrecognised",
    r"training done[\s\S]*return code = -6",
    note="Training is over and well; the process group's threads abort at exit.",
    also_ok=("none",),
)
def teardown_abort_after_training(bench: Bench) -> int:
    """destroy_process_group while the peer is already gone: an abort when all is done (a race, so up to five tries)."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 3}))
    for _ in range(5):
        bench.log.write_bytes(b"")
        script = train().replace("torch.distributed.barrier()\n", "")
        if code := bench.deepspeed(script, "--deepspeed", "--deepspeed_config", "ds_config.json"):
            return code
    return 0


@scenario("none", r"DeepSpeed C\+\+/CUDA extension op report")
def ok_ds_report(bench: Bench) -> int:
    """ds_report on a healthy CPU machine: [NO] everywhere, and warnings about async_io."""
    return bench.run([bench.python, str(TRAIN / "bin/ds_report")])


@scenario("none", r"early stopping")
def ok_exit_zero_early(bench: Bench) -> int:
    """A run that stops itself early with exit code 0 and deprecation warnings."""
    bench.write("ds_config.json", config())
    step = (
        "import warnings\nwarnings.warn('this scheduler is deprecated', DeprecationWarning, stacklevel=1)\n"
        "if step == 1:\n    print('early stopping: validation loss no longer improves')\n    raise SystemExit(0)"
    )
    return bench.deepspeed(train(step=step), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("user-code", r"KeyError: 'input_ids'")
def user_keyerror_in_dataset(bench: Bench) -> int:
    """The dataset of the user's script raises KeyError in a DataLoader worker."""
    bench.write("ds_config.json", config())
    before = """\
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"text": "hello"}["input_ids"]
"""
    after = "loader = torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=1)\nbatches = iter(loader)"
    script = train(before=before, after=after, step="batch = next(batches)")
    return bench.deepspeed(script, "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("user-code", r"mat1 and mat2 shapes cannot be multiplied")
def user_shape_mismatch(bench: Bench) -> int:
    """The user's model gets input of the wrong width."""
    bench.write("ds_config.json", config())
    return bench.deepspeed(
        train(step="x = torch.randn(2, 15)"), "--deepspeed", "--deepspeed_config", "ds_config.json"
    )


@scenario("user-code", r"must have the same dtype")
def user_dtype_mismatch_bf16(bench: Bench) -> int:
    """The config says bf16, the user's script feeds float32."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 2}, bf16={"enabled": True}))
    script = train(step="x = torch.randn(2, 16)")
    return bench.deepspeed(script, "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("user-code", r"unrecognized arguments: --local_rank", also_ok=("script-option-refused",))
def user_no_local_rank_argument(bench: Bench) -> int:
    """The script's own argparse does not know the --local_rank that the launcher adds."""
    script = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\nparser.parse_args()\n"
    return bench.deepspeed(script, "--lr", "0.1")


@scenario("user-code", r"ValueError: bad row 7[\s\S]*[Cc]onnection")
def user_raise_on_one_rank(bench: Bench) -> int:
    """Rank 1 raises; rank 0 then complains of a closed connection, which is only the echo."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 1}))
    step = "if rank == 1 and step == 1:\n    raise ValueError('bad row 7')"
    return bench.deepspeed(train(step=step), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("user-code", r"return code = -11|Segmentation fault")
def user_segfault(bench: Bench) -> int:
    """A native extension of the user's own dereferences a null pointer on rank 1."""
    bench.write("ds_config.json", config())
    step = "if rank == 1 and step == 1:\n    import ctypes\n    ctypes.string_at(0)"
    return bench.deepspeed(train(step=step), "--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("user-code", r"can't open file", also_ok=("none",))
def user_script_missing(bench: Bench) -> int:
    """The training script named on the command line does not exist."""
    return bench.run(
        [bench.python, str(TRAIN / "bin/deepspeed"), "--num_accelerators", "2", "trian.py"]
    )
