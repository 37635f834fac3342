"""Checkpoints and weight files: missing, damaged, of another shape, on a disk that will not take them."""

from __future__ import annotations

from ._bench import EXTRA, RUN, Bench, scenario
from ._scripts import config, train

MISMATCH = "checkpoint-mismatch"
CORRUPT = "weights-file-corrupt"
ARGS = ("--deepspeed", "--deepspeed_config", "ds_config.json")
SAVE = "engine.save_checkpoint('ckpt', tag='step3')"
LOAD = "print('resuming from', engine.load_checkpoint('ckpt', tag='step3'))"


def _saved(bench: Bench, stage: int = 2, ranks: int = 2) -> None:
    bench.write("ds_config.json", config(zero_optimization={"stage": stage}))
    bench.deepspeed(train(end=SAVE), *ARGS, ranks=ranks)
    bench.log.write_bytes(b"")


@scenario(MISMATCH, r"optim_states\.pt|FileNotFoundError")
def checkpoint_missing_shard(bench: Bench) -> int:
    """One rank's optimizer shard is gone."""
    _saved(bench)
    next((RUN / "ckpt/step3").glob("*rank_1*optim_states.pt")).unlink()
    return bench.deepspeed(train(after=LOAD), *ARGS)


@scenario(CORRUPT, r"(?i)truncated|PytorchStreamReader|corrupt", also_ok=(MISMATCH,))
def checkpoint_truncated_shard(bench: Bench) -> int:
    """One rank's optimizer shard was cut off while copied."""
    _saved(bench)
    shard = next((RUN / "ckpt/step3").glob("*rank_1*optim_states.pt"))
    shard.write_bytes(shard.read_bytes()[:1500])
    return bench.deepspeed(train(after=LOAD), *ARGS)


@scenario(MISMATCH, r"(?i)world size|partition|rank")
def checkpoint_other_world_size(bench: Bench) -> int:
    """Written by two ranks, loaded by one (ZeRO-3)."""
    _saved(bench, stage=3)
    return bench.deepspeed(train(after=LOAD), *ARGS, ranks=1)


@scenario(MISMATCH, r"(?i)error")
def checkpoint_other_stage(bench: Bench) -> int:
    """Written under ZeRO-2, loaded under ZeRO-3."""
    _saved(bench, stage=2)
    bench.write("ds_config.json", config(zero_optimization={"stage": 3}))
    return bench.deepspeed(train(after=LOAD), *ARGS)


@scenario(MISMATCH, r"latest")
def checkpoint_no_latest(bench: Bench) -> int:
    """The folder to resume from has no `latest`: a warning, and training starts anew."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 2}))
    return bench.deepspeed(
        train(
            after=LOAD.replace(", tag='step3'", "")
            + "\nassert engine.global_steps > 0, 'not resumed'"
        ),
        *ARGS,
    )


@scenario(MISMATCH, r"size mismatch for", also_ok=("user-code",))
def checkpoint_other_model(bench: Bench) -> int:
    """The model has grown since the checkpoint was written."""
    _saved(bench)
    return bench.deepspeed(train(after=LOAD).replace("64", "96"), *ARGS)


@scenario(
    "disk-full", r"(?i)No space left|enforce fail|failed writing|file write failed", needs=("root",)
)
def checkpoint_disk_full(bench: Bench) -> int:
    """The disk is full when the checkpoint is written."""
    (RUN / "ckpt").mkdir()
    bench.mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", str(RUN / "ckpt"))
    bench.write("ds_config.json", config(zero_optimization={"stage": 2}))
    return bench.deepspeed(train(end=SAVE).replace("64", "2048"), *ARGS)


@scenario("disk-full", r"No space left on device|enforce fail", needs=("root",))
def checkpoint_disk_full_torch_save(bench: Bench) -> int:
    """torch.save onto a full disk."""
    (RUN / "out").mkdir()
    bench.mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(RUN / "out"))
    return bench.py("import torch\n\ntorch.save({'w': torch.zeros(1 << 20)}, 'out/model.pt')\n")


@scenario(
    "disk-full",
    r"Disk quota exceeded|File too large|No space|enforce fail",
    also_ok=(
        "weights-file-corrupt",
        "unrecognised",
    ),
)
def checkpoint_file_size_limit(bench: Bench) -> int:
    """ulimit -f: the checkpoint outgrows the limit of file size."""
    bench.write("train.py", "import torch\n\ntorch.save({'w': torch.zeros(1 << 20)}, 'model.pt')\n")
    return bench.run(["bash", "-c", f"ulimit -f 512; exec {bench.python} train.py"])


@scenario("path-not-writable", r"Read-only file system", needs=("root",))
def checkpoint_read_only_torch_save(bench: Bench) -> int:
    """torch.save into a folder on a read-only mount."""
    (RUN / "out").mkdir()
    bench.mount("-t", "tmpfs", "-o", "ro", "tmpfs", str(RUN / "out"))
    return bench.py(
        "import torch\n\nwith open('out/model.pt', 'wb') as file:\n    torch.save({'w': torch.zeros(1 << 20)}, file)\n"
    )


@scenario(
    "path-not-writable",
    r"Parent directory \S+ does not exist",
    needs=("root",),
    also_ok=(
        "path-missing",
        "disk-full",
        "unrecognised",
    ),
)
def checkpoint_read_only(bench: Bench) -> int:
    """The output folder is on a read-only mount; DeepSpeed says only that its parent does not exist."""
    (RUN / "ckpt").mkdir()
    bench.mount("-t", "tmpfs", "-o", "ro", "tmpfs", str(RUN / "ckpt"))
    bench.write("ds_config.json", config(zero_optimization={"stage": 2}))
    return bench.deepspeed(train(end=SAVE), *ARGS)


@scenario(CORRUPT, r"Unsupported operand 118")
def checkpoint_lfs_pointer_torch(bench: Bench) -> int:
    """pytorch_model.bin is a git-lfs pointer; 118 is the v of its first word, version."""
    bench.write("pytorch_model.bin", POINTER)
    return bench.py("import torch\n\nstate = torch.load('pytorch_model.bin', map_location='cpu')\n")


@scenario(CORRUPT, r"invalid load key, 'v'")
def checkpoint_lfs_pointer_full_pickle(bench: Bench) -> int:
    """The same with weights_only=False, as older torch had by default."""
    bench.write("pytorch_model.bin", POINTER)
    return bench.py(
        "import torch\n\nstate = torch.load('pytorch_model.bin', map_location='cpu', weights_only=False)\n"
    )


POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 9952308160\n"
)


@scenario(CORRUPT, r"(?i)HeaderTooLarge|header too large", extra=("safetensors==0.8.0",))
def checkpoint_lfs_pointer_safetensors(bench: Bench) -> int:
    """model.safetensors is a git-lfs pointer."""
    bench.write("model.safetensors", POINTER)
    script = "from safetensors.torch import load_file\n\nstate = load_file('model.safetensors')\n"
    return bench.py(script, env={"PYTHONPATH": str(EXTRA / "safetensors-0.8.0")})


@scenario(
    CORRUPT,
    r"(?i)incomplete|MetadataIncompleteBuffer|InvalidHeader|header",
    extra=("safetensors==0.8.0",),
)
def checkpoint_safetensors_truncated(bench: Bench) -> int:
    """A download of model.safetensors broke off."""
    script = """\
import torch
from safetensors.torch import load_file, save_file

save_file({"w": torch.zeros(1000)}, "model.safetensors")
with open("model.safetensors", "r+b") as file:
    file.truncate(2000)
state = load_file("model.safetensors")
"""
    return bench.py(script, env={"PYTHONPATH": str(EXTRA / "safetensors-0.8.0")})


@scenario(CORRUPT, r"failed finding central directory")
def checkpoint_zip_truncated(bench: Bench) -> int:
    """A .pt file was cut off while copied."""
    script = """\
import torch

torch.save({"w": torch.zeros(1000)}, "model.pt")
with open("model.pt", "r+b") as file:
    file.truncate(3000)
state = torch.load("model.pt")
"""
    return bench.py(script)


@scenario(
    "dependency-version-conflict",
    r"Weights only load failed",
    also_ok=("user-code", "deepspeed-torch-incompatible"),
)
def checkpoint_weights_only(bench: Bench) -> int:
    """A checkpoint with a class of its own, loaded under the default weights_only=True of torch 2.6 and later."""
    script = """\
import argparse

import torch

torch.save({"args": argparse.Namespace(lr=0.1), "w": torch.zeros(10)}, "model.pt")
state = torch.load("model.pt")
"""
    return bench.py(script)


@scenario("zero3-empty-weights", r"torch\.Size\(\[0\]\)")
def checkpoint_zero3_empty_weights(bench: Bench) -> int:
    """A state dict is loaded into a model that ZeRO-3 has already partitioned."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 3}))
    after = "engine.module.load_state_dict(Net().state_dict())"
    return bench.deepspeed(train(after=after), *ARGS)


@scenario("zero3-empty-weights", r"torch\.Size\(\[0\]\)|size mismatch|must be 2-D|\[0\]")
def checkpoint_zero3_init_then_use(bench: Bench) -> int:
    """A model made under deepspeed.zero.Init is used before initialize: its weights have size 0."""
    bench.write("ds_config.json", config(zero_optimization={"stage": 3}))
    before = "deepspeed.init_distributed()\nwith deepspeed.zero.Init():\n    net = Net()\nprint(torch.nn.functional.linear(torch.randn(2, 16), net.body[0].weight.data))"
    return bench.deepspeed(train(before=before), *ARGS)
