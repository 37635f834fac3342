"""One rank of a smoke run: started by the real launcher, in the patient, Python 3.8 and later.

`--job FILE` is the job. All reports go to `rank-N.jsonl` next to that file; printed output goes to
`rank-N.log`.

Over 400 lines because it is copied into the folder of a run and imports only modules from there.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import math
import os
import platform
import signal
import sys
import time
from typing import Any

import dsdsmoke_locks as locks
from dsdsmoke_comm import Communication
from dsdsmoke_report import CheckError, Reporter, follow_parent, take_output

ZERO_3 = 3
#: Largest relative error of a matmul against fp32.
MATMUL_ERROR = {"bf16": 2e-2, "fp16": 4e-3, "fp32": 2e-3}


def number(*names: Any) -> Any:
    """The first of these variables that is set, as a number; None if none is."""
    for name in names:
        with contextlib.suppress(KeyError, ValueError):
            return int(os.environ[name])
    return None


class Run(Communication):
    """The phases of one rank."""

    def __init__(self, job: Any, folder: Any, reporter: Any, local_rank: Any, world: Any) -> None:
        self.job, self.folder, self.report = job, folder, reporter
        self.rank, self.local_rank, self.world = reporter.rank, local_rank, world
        self.on_gpu = job["device"] == "cuda"

    def fault(self, kind: Any, phase: Any) -> Any:
        """Breaks something on purpose, so that tests can check that it is noticed."""
        wanted = self.job.get("fault") or {}
        if wanted.get("kind") != kind or wanted.get("rank") != self.rank:
            return False
        if wanted.get("phase", "steps") != phase:
            return False
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind in ("launcher", "runner"):
            parent = os.getppid()
            if kind == "runner":
                with open("/proc/%d/stat" % parent) as stream:
                    parent = int(stream.read().rpartition(")")[2].split()[1])
            os.kill(parent, signal.SIGKILL)
            time.sleep(3600)
        elif kind in ("sleep", "slow"):
            time.sleep(3600 if kind == "sleep" else 1.5)
        elif kind == "memory":
            import torch

            hoard = []
            while True:
                hoard.append(torch.ones(1 << 26))
        return True

    def imports(self, found: Any) -> Any:
        import torch

        found["torch"] = torch.__version__
        found["cuda"] = torch.version.cuda
        import deepspeed

        found["deepspeed"] = deepspeed.__version__
        found["python"] = platform.python_version()
        self.torch, self.deepspeed = torch, deepspeed

    def devices(self, found: Any) -> Any:
        torch = self.torch
        found["host"] = platform.node()
        found["local_rank"] = self.local_rank
        if not self.on_gpu:
            self.device = torch.device("cpu")
            found["device"] = "cpu"
            found["threads"] = torch.get_num_threads()
            return
        torch.cuda.set_device(self.local_rank)
        self.device = torch.device("cuda", self.local_rank)
        properties = torch.cuda.get_device_properties(self.device)
        found["device"] = properties.name
        found["uuid"] = str(getattr(properties, "uuid", ""))
        found["total_bytes"] = properties.total_memory
        found["capability"] = "%d.%d" % (properties.major, properties.minor)
        torch.ones(8, device=self.device).sum().item()

    def rendezvous(self, found: Any) -> Any:
        dist = self.torch.distributed
        backend = "nccl" if self.on_gpu else "gloo"
        found["backend"] = backend
        dist.init_process_group(
            backend, timeout=dt.timedelta(seconds=self.job["collective_timeout"])
        )
        found["world"] = dist.get_world_size()
        found["port"] = os.environ.get("MASTER_PORT", "")
        if dist.get_world_size() != self.job["world"]:
            raise CheckError(
                "wrong-ranks" if self.job["nodes"] > 1 else "no-rank-environment",
                "%d ranks have connected, but %d were planned"
                % (dist.get_world_size(), self.job["world"]),
            )

    def synchronize(self) -> Any:
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def dtype(self) -> Any:
        torch = self.torch
        names = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
        return names[self.job["precision"]]

    def numerics(self, found: Any) -> Any:
        torch = self.torch
        size = 2048 if self.on_gpu else 256
        generator = torch.Generator().manual_seed(7)
        left = torch.randn(size, size, generator=generator).to(self.device)
        right = torch.randn(size, size, generator=generator).to(self.device)
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            want = left @ right
            a, b = left.to(self.dtype()), right.to(self.dtype())
            got = a @ b
            self.synchronize()
            begun = time.perf_counter()
            for _ in range(5):
                got = a @ b
            self.synchronize()
            found["matmul_ms"] = (time.perf_counter() - begun) / 5 * 1e3
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
        error = ((got.float() - want).norm() / want.norm()).item()
        found["relative_error"] = error
        limit = MATMUL_ERROR[self.job["precision"]]
        if not error <= limit:
            raise CheckError(
                "wrong-values",
                "a matmul in %s on rank %d is off by %.2g, expected at most %.2g"
                % (self.job["precision"], self.rank, error, limit),
            )

    def build_ops(self, found: Any) -> Any:
        """Loads the ops that this run needs. Each op is first compiled by one rank of the host.

        The ranks of a host divide the ops among themselves and compile in parallel.
        """
        from deepspeed.accelerator import get_accelerator

        dist, ops = self.torch.distributed, self.job["ops"]
        found["seconds"] = {}

        def load(names: Any) -> Any:
            for name in names:
                builder = get_accelerator().create_op_builder(name)
                if builder is None or type(builder).__name__ == "NotImplementedBuilder":
                    continue
                begun = time.monotonic()
                folder = build_folder(builder)
                self.report.note(op=name, folder=folder)
                if folder is not None:
                    refuse_stale_lock(name, os.path.join(folder, locks.NAME))
                builder.load(verbose=False)
                found["seconds"][name] = round(time.monotonic() - begun, 2)
                self.report.note(loaded=name)

        mine = share(ops, self.local_rank, number("LOCAL_WORLD_SIZE", "LOCAL_SIZE") or 1)
        load(mine)
        dist.barrier()
        load([name for name in ops if name not in mine])
        dist.barrier()

    def engine_init(self, found: Any) -> Any:
        import dsdsmoke_gpt as gpt

        torch, job = self.torch, self.job
        torch.manual_seed(job["seed"])
        config = job["ds_config"]
        zero = config.get("zero_optimization") or {}
        stage = zero.get("stage", 0)
        context = contextlib.nullcontext()
        if stage == ZERO_3 and job["full_size"]:
            context = self.deepspeed.zero.Init(config_dict_or_path=config)
        with context:
            model = gpt.Gpt(job["shape"])
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        self.engine, self.optimizer, _, _ = self.deepspeed.initialize(
            model=model, model_parameters=model.parameters(), config=config
        )
        found["parameters"] = sum(
            getattr(p, "ds_numel", p.numel()) for p in self.engine.module.parameters()
        )
        found["stage"] = self.engine.zero_optimization_stage()
        found["counted"] = self.counted = steps_counted(self.optimizer)
        # if the config does not set it, the default is 1.0 in DeepSpeed 0.19.8; it was 0 before
        self.job["clip"] = float(self.engine.gradient_clipping())
        if found["stage"] != stage:
            raise CheckError(
                "setting-ignored",
                "the engine runs ZeRO stage %d, but the config says %d" % (found["stage"], stage),
            )

    def set_rate(self) -> Any:
        if self.job["lr"] is not None and self.optimizer is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.job["lr"]

    def probe(self) -> Any:
        """Loss on tokens that are equal on all ranks: equal weights give equal losses."""
        import dsdsmoke_gpt as gpt

        job = self.job
        tokens = gpt.sample(
            job["seed"] + 1, 0, 0, min(2, job["micro_batch"]), job["sequence"],
            job["shape"]["vocab"],
        )  # fmt: skip
        with self.torch.no_grad():
            return self.engine(tokens.to(self.device)).item()

    def gradients(self) -> Any:
        """Norm of the gradients as backward left them, and the scale that the step divides by.

        None if that scale is not DeepSpeed's, or the gradients are stored elsewhere (ZeRO).
        """
        import dsdsmoke_gpt as gpt

        if self.job["precision"] != "fp16" or self.engine.zero_optimization_stage():
            return None
        scale = getattr(
            getattr(self.optimizer, "loss_scale_config", self.optimizer), "cur_scale", 0
        )
        left = [p.grad for p in self.engine.module.parameters() if p.grad is not None]
        return {"norm": gpt.norm_of(left), "scale": float(scale)} if scale and left else None

    def steps(self, found: Any) -> Any:
        import dsdsmoke_gpt as gpt
        from dsdsmoke_memory import model_states

        torch, job = self.torch, self.job
        micro, passes = job["micro_batch"], job["accumulation"]
        rows = found["steps"] = []
        self.set_rate()
        found["probe_before"] = self.probe()
        for step in range(job["steps"]):
            self.report.note(step=step)
            for kind in ("kill", "sleep", "memory", "launcher", "runner"):
                self.fault(kind, "steps")
            begun, total, own = time.perf_counter(), torch.zeros(1, device=self.device), 0.0
            for number in range(passes):
                index = (number * self.world + self.rank) * micro
                tokens = gpt.sample(
                    job["seed"], step, index, micro, job["sequence"], job["shape"]["vocab"]
                ).to(self.device)
                mark = time.perf_counter()
                self.fault("slow", "steps")
                loss = self.engine(tokens)
                self.synchronize()
                own += time.perf_counter() - mark
                if self.fault("nan", "steps"):
                    loss = loss * float("nan")
                total += loss.detach().float() / passes
                self.engine.backward(loss)
                if step == 0 and number == passes - 1:
                    found["gradients"] = self.gradients()
                if step == 1 and number == passes - 1:
                    found["model_state"] = model_states(self.engine)
                self.engine.step()
                self.set_rate()
            self.synchronize()
            spent = time.perf_counter() - begun
            if self.world > 1:
                torch.distributed.all_reduce(total)
            loss = (total / self.world).item()
            rows.append({"loss": loss, "ms": spent * 1e3, "own_ms": own * 1e3})
            self.report.note(step=step, loss=loss)
            if not math.isfinite(loss):
                raise CheckError("not-finite", "the loss is %s after %d steps" % (loss, step + 1))
        found["probe_after"] = self.probe()
        found["skipped"] = getattr(self.engine, "skipped_steps", 0)
        if self.on_gpu:
            found["peak_device_bytes"] = torch.cuda.max_memory_allocated()
            found["reserved_device_bytes"] = torch.cuda.max_memory_reserved()
        found["peak_host_bytes"] = peak_host()

    def checkpoint(self, found: Any) -> Any:
        if not self.job["checkpoint"]:
            found["left_out"] = True
            return
        import dsdsmoke_gpt as gpt

        job, where = self.job, os.path.join(self.folder, "checkpoint")
        before = self.probe()
        begun = time.monotonic()
        self.engine.save_checkpoint(where, tag="smoke")
        found["save_seconds"] = time.monotonic() - begun
        # one more step, otherwise a load that does nothing would pass
        for number in range(job["accumulation"]):
            index = (number * self.world + self.rank) * job["micro_batch"]
            tokens = gpt.sample(
                job["seed"], job["steps"], index, job["micro_batch"], job["sequence"],
                job["shape"]["vocab"],
            )  # fmt: skip
            self.engine.backward(self.engine(tokens.to(self.device)))
            self.engine.step()
        moved = self.probe()
        begun = time.monotonic()
        path, _ = self.engine.load_checkpoint(where, tag="smoke")
        found["load_seconds"] = time.monotonic() - begun
        after = self.probe()
        found.update(before=before, moved=moved, after=after)
        if path is None or abs(after - before) > 1e-3 * max(1.0, abs(before)):
            raise CheckError(
                "checkpoint-differs",
                "the loss is %.5f after loading the checkpoint, but was %.5f when it was saved"
                % (after, before),
            )

    def compare(self, found: Any) -> Any:
        """The same training in one process without DeepSpeed, by rank 0."""
        if self.rank == 0 and self.job.get("adam"):
            import dsdsmoke_gpt as gpt

            losses, norm = gpt.reference(self.job, self.device, self.dtype(), self.counted)
            found["reference"], found["reference_norm"] = losses, norm
        self.torch.distributed.barrier()

    def all(self) -> Any:
        phases = (
            ("import", self.imports), ("device", self.devices), ("rendezvous", self.rendezvous),
            ("collectives", self.collectives), ("numerics", self.numerics),
            ("build-ops", self.build_ops), ("engine-init", self.engine_init),
            ("steps", self.steps), ("checkpoint", self.checkpoint), ("teardown", self.teardown),
        )  # fmt: skip
        for name, phase in phases:
            with self.report.during(name) as found:
                phase(found)

    def teardown(self, found: Any) -> Any:
        self.compare(found)
        found["peak_host_bytes"] = peak_host()
        self.engine = self.optimizer = None
        self.torch.distributed.destroy_process_group()


def share(ops: Any, local_rank: Any, ranks: Any) -> Any:
    """The ops that this rank compiles, on a host with this many ranks."""
    return ops[local_rank::ranks] if local_rank < ranks else []


def build_folder(builder: Any) -> Any:
    """The folder in which a file `lock` may block the build of an op.

    None for a pre-built or unknown op, and where the lock of a build ends with its process.
    """
    # private names, which another version may not have
    with contextlib.suppress(Exception):
        from deepspeed import git_version_info as built
        from deepspeed.accelerator import get_accelerator
        from torch.utils.cpp_extension import _get_build_directory

        if not locks.file_blocks():
            return None
        own = get_accelerator().device_name()
        ready = built.installed_ops.get(builder.name)
        # ops that were built for another accelerator are not used (DeepSpeed 0.14.1 and later)
        if not ready or getattr(built, "accelerator_name", own) != own:
            return _get_build_directory(builder.name, False)
    return None


def refuse_stale_lock(op: Any, path: Any) -> None:
    age = locks.wait_for(path)
    if age is not None:
        raise CheckError(
            "build-waits",
            "`%s` is %.0f s old and no process holds it: a build of %s was killed, and every "
            "job that needs the op waits forever" % (path, age, op),
        )


def steps_counted(optimizer: Any) -> int:
    """Steps that the innermost optimizer has counted so far."""
    while getattr(optimizer, "optimizer", None) is not None:
        optimizer = optimizer.optimizer
    for state in getattr(optimizer, "state", {}).values():
        if "step" in state:
            return int(state["step"])
    return 0


def peak_host() -> Any:
    """Peak memory of this process, in bytes."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


def main() -> Any:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True)
    parser.add_argument("--local_rank", "--local-rank", type=int, default=None)
    args, _ = parser.parse_known_args()
    with open(args.job, encoding="utf-8") as stream:
        job = json.load(stream)
    folder = os.path.dirname(os.path.abspath(args.job))
    rank = number("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID") or 0
    local = number("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
    if local is None:
        local = args.local_rank or 0
    world = number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS") or 1
    for name, value in (("RANK", rank), ("LOCAL_RANK", local), ("WORLD_SIZE", world)):
        os.environ.setdefault(name, str(value))
    follow_parent(folder, job["patience"])
    kept_open = take_output(folder, rank)
    reporter = Reporter(folder, rank)
    reporter.write("begin")
    reporter.write("ok", {"host": platform.node(), "local_rank": local})
    Run(job, folder, reporter, local, world).all()
    reporter.write("done")
    for stream in kept_open:
        stream.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
