"""Which torch each DeepSpeed release trains with: three real steps on a CPU for each pair.

    pip download --no-deps --no-binary :all: --no-build-isolation -d sdists deepspeed==0.18.2 …
    python benchmarks/torch_floors.py --sdists sdists --stages 0,1,2 OLD/bin/python NEW/bin/python

Each interpreter brings a torch and what DeepSpeed imports (hjson, msgpack, ninja, packaging,
psutil, py-cpuinfo, pydantic, tqdm, einops). The releases are not installed, since the setup of some
imports what that torch does not have: their archives are unpacked, and put on the path as a
checkout would be. The rows are what `TORCH_FLOORS` in `checks/dsdoctor_checks/python/_tables.py`
states. gloo of torch before 2.2 has no all-gather for ZeRO-3, so stage 3 fails there for that.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

#: What a rank runs: the stage of ZeRO and a folder for checkpoints are its arguments.
RANK = """
import sys
import torch
import deepspeed

backend = sys.modules["deepspeed.comm.torch"]
if hasattr(backend, "build_shm_op"):
    backend.build_shm_op = lambda: None  # nothing is compiled: only torch is tried
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
config = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"stage": int(sys.argv[1])},
    "zero_allow_untested_optimizer": True,
}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
for _ in range(3):
    loss = engine(torch.randn(2, 16)).float().pow(2).mean()
    engine.backward(loss)
    engine.step()
engine.save_checkpoint(sys.argv[2])
engine.load_checkpoint(sys.argv[2])
print("OK", torch.__version__)
"""
#: Seconds for one pair.
DEADLINE = 300


def unpack(archive: Path, folder: Path) -> Path:
    """The release as a package on a path, without its setup."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (root,) = (path for path in folder.iterdir() if path.name == archive.name[: -len(".tar.gz")])
    # the links that its setup makes
    for link, target in (
        ("ops/op_builder", "../../op_builder"),
        ("ops/csrc", "../../csrc"),
        ("accelerator", "../accelerator"),
    ):
        path = root / "deepspeed" / link
        if not path.exists():
            path.symlink_to(target)
    return root


def outcome(python: str, root: Path, stage: str, port: int, folder: str) -> str:
    """`OK` and torch's release, or the last error of the run."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "DS_ACCELERATOR": "cpu",
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    try:
        done = subprocess.run(
            [python, "-c", RANK, stage, folder],
            env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end within {DEADLINE} s"
    lines = (done.stdout + done.stderr).splitlines()
    said = [line for line in lines if line.startswith("OK ") or "Error: " in line]
    return said[-1] if said else f"status {done.returncode}"


def main() -> int:
    """Tries each release with each torch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--sdists", type=Path, required=True, help="folder of DeepSpeed's archives")
    parser.add_argument("--stages", default="0,1,2", help="stages of ZeRO")
    parser.add_argument("--port", type=int, default=29800, help="the first port to use")
    asked = parser.parse_args()
    port = asked.port
    for archive in sorted(asked.sdists.glob("deepspeed-*.tar.gz")):
        with tempfile.TemporaryDirectory() as folder:
            root = unpack(archive, Path(folder))
            for python in asked.pythons:
                for stage in asked.stages.split(","):
                    said = outcome(python, root, stage, port, f"{folder}/ckpt{port}")
                    print(f"{root.name} {python} ZeRO-{stage}: {said}", flush=True)
                    port += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
