"""`dsdoctor recommend`."""

from __future__ import annotations

import re
import shutil

import click

from dsdoctor.errors import UsageError
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.launch import encode
from dsdoctor.recommend import files, models
from dsdoctor.recommend.plan import (
    OPTIMIZERS,
    Machine,
    Options,
    machine_from,
    machine_of,
    recommend,
)
from dsdoctor.report.plan import render

_CAPABILITY = re.compile(r"^(\d+)\.(\d+)$")


def _capability(text: str) -> tuple[int, int]:
    match = _CAPABILITY.match(text)
    if match is None:
        raise UsageError(f"`--gpu-cc {text}` is no compute capability; expected one such as `8.0`")
    return int(match[1]), int(match[2])


def _this_machine(gpus: str | None, host_gib: float | None, timeout: float | None) -> Machine:
    """Facts of this host, collected as `check` does."""
    from dsdoctor import patient  # noqa: PLC0415  # the engine is not needed for --gpu-memory
    from dsdoctor.cli import common  # noqa: PLC0415
    from dsdoctor.engine import TOTAL_SECONDS, collect  # noqa: PLC0415
    from dsdoctor.host import LocalHost  # noqa: PLC0415
    from dsdoctor.model.facts.run import RunNeeds  # noqa: PLC0415

    needs = RunNeeds(gpus=common.parse_gpus(gpus), quick=True)
    host = LocalHost()
    snapshot = collect(
        host,
        [needs, patient.choose(host, None)],
        common.all_probes(common.load_registry()),
        wanted={Gpus, Resources, OsInfo},
        timeout=timeout or TOTAL_SECONDS,
    )
    machine = machine_from(snapshot.get(Gpus), snapshot.get(Resources), needs, snapshot.get(OsInfo))
    if host_gib is None:
        return machine
    import dataclasses  # noqa: PLC0415

    return dataclasses.replace(machine, host_bytes=int(host_gib * (1 << 30)))


@click.command("recommend")
@click.option("--model", "model_name", required=True, help="config.json, preset, or `1.5B`.")
@click.option("--layers", type=click.IntRange(min=1), help="Layers of a model given by size.")
@click.option("--hidden", type=click.IntRange(min=1), help="Hidden width of such a model.")
@click.option("--heads", type=click.IntRange(min=1), help="Attention heads of such a model.")
@click.option("--gpus", metavar="0,1", help="GPUs to use (index or UUID); all by default.")
@click.option("--nodes", type=click.IntRange(min=1), default=1, help="Number of hosts.")
@click.option("--hosts", metavar="A,B", help="Names of the hosts, for the launch line.")
@click.option("--seq-len", type=click.IntRange(min=1), help="Tokens in a sequence.")
@click.option("--micro-batch", type=click.IntRange(min=1), help="Sequences on a GPU at once.")
@click.option("--global-batch", type=click.IntRange(min=1), help="Sequences in one step.")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32"]))
@click.option("--finetune", type=click.Choice(["full", "lora"]), default="full")
@click.option("--lora-rank", type=click.IntRange(min=1), default=16)
@click.option("--optimizer", type=click.Choice(sorted(OPTIMIZERS)), default="adamw")
@click.option("--attention", type=click.Choice(["flash", "eager"]), default="flash")
@click.option("--checkpointing", type=click.Choice(["on", "off"]), help="Recompute activations.")
@click.option(
    "--launcher", type=click.Choice(["deepspeed", "torchrun", "accelerate"]), default="deepspeed"
)
@click.option("--objective", type=click.Choice(["speed", "memory", "balanced"]), default="speed")
@click.option("--master-port", type=click.IntRange(1, 65535), default=29500)
@click.option("--gpu-memory", type=click.FloatRange(min=0.1), metavar="GIB", help="Another GPU.")
@click.option("--gpu-count", type=click.IntRange(min=1), metavar="N", help="How many of them.")
@click.option("--gpu-cc", metavar="8.0", help="Their compute capability.")
@click.option("--host-memory", type=click.FloatRange(min=0.1), metavar="GIB", help="Host memory.")
@click.option("--cpu", "cpu_ranks", type=click.IntRange(min=1), default=1, help="CPU ranks.")
@click.option("--script", default="train.py", help="Your training script.")
@click.option("--slurm", is_flag=True, help="Write an sbatch script too (needs -o).")
@click.option("--timeout", type=click.FloatRange(min=1), metavar="SECONDS")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("-o", "--output", "folder", metavar="DIR", help="Write config and scripts there.")
def command(
    *,
    model_name: str,
    layers: int | None,
    hidden: int | None,
    heads: int | None,
    gpus: str | None,
    nodes: int,
    hosts: str | None,
    seq_len: int | None,
    micro_batch: int | None,
    global_batch: int | None,
    precision: str | None,
    finetune: str,
    lora_rank: int,
    optimizer: str,
    attention: str,
    checkpointing: str | None,
    launcher: str,
    objective: str,
    master_port: int,
    gpu_memory: float | None,
    gpu_count: int | None,
    gpu_cc: str | None,
    host_memory: float | None,
    cpu_ranks: int,
    script: str,
    slurm: bool,
    timeout: float | None,
    form: str,
    folder: str | None,
) -> int:
    """Compute launch settings for a model: the fastest that fit this machine, or a described one.

    Exit status 0: something fits; 1: nothing does.
    """
    model = models.resolve(model_name, layers=layers, hidden=hidden, heads=heads)
    if slurm and folder is None:
        raise UsageError("`--slurm` writes a file; give its folder with `-o DIR`")
    if gpu_memory is None:
        if gpu_count is not None or gpu_cc is not None:
            raise UsageError(
                "`--gpu-count` and `--gpu-cc` describe another machine; "
                "give `--gpu-memory` with them"
            )
        machine = _this_machine(gpus, host_memory, timeout)
    else:
        if gpus is not None:
            raise UsageError(
                "`--gpus` chooses among this machine's GPUs; use `--gpu-count` with `--gpu-memory`"
            )
        machine = machine_of(
            gpu_gib=gpu_memory,
            count=gpu_count or 1,
            cc=_capability(gpu_cc or "8.0"),
            host_gib=host_memory,
        )
    plan = recommend(
        machine,
        model,
        Options(
            nodes=nodes,
            sequence=seq_len,
            micro_batch=micro_batch,
            global_batch=global_batch,
            precision=precision,
            finetune=finetune,
            lora_rank=lora_rank,
            optimizer=optimizer,
            attention=attention,
            checkpointing=None if checkpointing is None else checkpointing == "on",
            launcher=launcher,
            objective=objective,
            cpu_ranks=cpu_ranks,
            master_port=master_port,
            hosts=tuple(host.strip() for host in (hosts or "").split(",") if host.strip()),
            script=script,
        ),
    )
    if form == "json":
        click.echo(encode(plan))
    else:
        click.echo(render(plan, shutil.get_terminal_size().columns), nl=False)
    if folder is not None:
        for path in files.write(plan, folder, slurm=slurm):
            click.echo(f"wrote {path}", err=True)
    return 0 if plan.fits else 1
