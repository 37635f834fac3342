"""`dsdoctor recommend`."""

from __future__ import annotations

import dataclasses
import shutil

import click

from dsdoctor.cli import html, loading, measuring, options, proving
from dsdoctor.cli.numbers import Finite, Whole
from dsdoctor.cli.output import colored_plan, wants_colour
from dsdoctor.cli.target_machine import Target
from dsdoctor.errors import UsageError
from dsdoctor.framework import HF, NATIVE, of_script
from dsdoctor.host import LocalHost
from dsdoctor.job import launch_site
from dsdoctor.model.launch_plan import LaunchPlan, encode
from dsdoctor.recommend import choice, files, releases
from dsdoctor.recommend.optimizers import OPTIMIZERS
from dsdoctor.recommend.options import (
    ATTENTIONS,
    FINETUNES,
    HEADROOM,
    LAUNCHERS,
    PlanOptions,
)
from dsdoctor.report.launch_plan import render


@click.command("recommend")
@click.option(
    "--model",
    "model_name",
    required=True,
    metavar="MODEL",
    help="config.json, preset, or a size such as `1.5B`.",
)
@click.option("--layers", type=Whole(1, 10_000), help="Layers of a model given by size.")
@click.option("--hidden", type=Whole(1, 1_000_000), help="Hidden width of such a model.")
@click.option("--heads", type=Whole(1, 100_000), help="Attention heads of such a model.")
@click.option(
    "--vocab", type=Whole(1, 100_000_000), help="Vocabulary of such a model.", show_default="32000"
)
@click.option(
    "--measure/--no-measure",
    default=None,
    help="Run the model without data to size its activations; the default for a config.json.",
)
@click.option("--stage", type=Whole(0, 3), help="Consider only this ZeRO stage.")
@click.option(
    "--offload",
    type=click.Choice(list(choice.OFFLOADS)),
    help="Consider only this kind of offload.",
)
@click.option("--python", metavar="PATH", help="Interpreter or virtual environment of the job.")
@click.option("--gpus", metavar="0,1", help="GPUs to use (index, UUID, MIG); all by default.")
@click.option(
    "--nodes", type=Whole(1, 100_000), help="Number of identical nodes.", show_default="1"
)
@click.option("--hosts", metavar="A,B", help="Host names of the nodes; the first is the master.")
@click.option("--hostfile", metavar="FILE", help="Take the host names from a hostfile.")
@click.option("--seq-len", type=Whole(1, 1_000_000_000), help="Tokens per sequence.")
@click.option("--micro-batch", type=Whole(1, 1_000_000), help="Sequences per GPU and forward pass.")
@click.option("--global-batch", type=Whole(1, 1_000_000_000), help="Sequences per optimizer step.")
@click.option(
    "--precision",
    type=click.Choice(["bf16", "fp16", "fp32"]),
    help="Training precision.",
    show_default="depends on the hardware",
)
@click.option(
    "--finetune",
    type=click.Choice(FINETUNES),
    default="full",
    show_default=True,
    help="What is trained: all parameters, adapters, or adapters on a 4-bit base.",
)
@click.option(
    "--lora-rank",
    type=Whole(1, 100_000),
    default=16,
    show_default=True,
    help="Rank of the adapters.",
)
@click.option(
    "--lora-dropout/--no-lora-dropout",
    default=True,
    show_default=True,
    help="Whether adapters use dropout, which keeps a copy of their input.",
)
@click.option(
    "--lora-fp32",
    is_flag=True,
    help="Adapters stay in fp32 (PEFT's default; DeepSpeed with bf16 or fp16 casts them).",
)
@click.option(
    "--modules-to-save",
    metavar="A,B",
    help="Modules trained in full next to adapters: embed_tokens, lm_head, vision, or NAME=COUNT.",
)
@click.option("--fused-loss", is_flag=True, help="The loss is fused with the output layer (Liger).")
@click.option(
    "--loads-first",
    is_flag=True,
    help="The script loads the whole model before DeepSpeed partitions it.",
)
@click.option(
    "--deepspeed", metavar="VERSION", help="DeepSpeed release of the job.", show_default="newest"
)
@click.option(
    "--transformers",
    metavar="VERSION",
    help="transformers release of the job.",
    show_default="that of the environment",
)
@click.option(
    "--optimizer",
    type=click.Choice(sorted(OPTIMIZERS)),
    default="adamw",
    show_default=True,
    help="Optimizer of the job.",
)
@click.option(
    "--attention",
    type=click.Choice(ATTENTIONS),
    help="Attention kernel; `sdpa` is torch's, for batches with padding.",
    show_default="flash; eager if the model has only that",
)
@click.option(
    "--image-tokens",
    type=Whole(0, 1_000_000_000),
    metavar="N",
    help="Tokens of a sequence that are images.",
    show_default="one image",
)
@click.option("--checkpointing", type=click.Choice(["on", "off"]), help="Recompute activations.")
@click.option(
    "--launcher",
    type=click.Choice(list(LAUNCHERS)),
    help="How to launch.",
    show_default="deepspeed",
)
@click.option(
    "--objective",
    type=click.Choice(list(HEADROOM)),
    default="speed",
    show_default=True,
    help="What to favor; `balanced` keeps more headroom than `speed`.",
)
@click.option(
    "--master-port",
    type=Whole(1, 65535),
    help="Rendezvous port.",
    show_default="the first free one from 29500",
)
@click.option(
    "--like", metavar="8xH100-SXM", help="Plan for a machine of this type instead of this one."
)
@click.option(
    "--from",
    "from_file",
    metavar="FILE",
    help="Plan for the machine of a snapshot instead of this one.",
)
@click.option(
    "--gpu-memory",
    type=Finite(0.1, 10_000),
    metavar="GIB",
    help="Plan for GPUs with this much memory instead of this machine.",
)
@click.option("--gpu-count", type=Whole(1, 1024), metavar="N", help="Number of GPUs to plan for.")
@click.option("--gpu-cc", metavar="8.0", help="Compute capability of these GPUs.")
@click.option("--host-memory", type=Finite(min=0.1), metavar="GIB", help="Host memory to plan for.")
@click.option("--cpus", type=Whole(1, 100_000), metavar="N", help="CPU cores to plan for.")
@click.option(
    "--cpu",
    "cpu_ranks",
    type=Whole(1, 1024),
    metavar="N",
    help="Number of CPU ranks if there is no GPU.",
    show_default="1",
)
@click.option(
    "--script", metavar="FILE", default="train.py", show_default=True, help="Your training script."
)
@click.option(
    "--framework",
    type=click.Choice([HF, NATIVE]),
    help="What passes the config to DeepSpeed: the Hugging Face Trainer (hf), or the script itself "
    "(native).",
    show_default="by the imports of the script, else native",
)
@click.option("--slurm", is_flag=True, help="Also write an sbatch script (requires -o).")
@click.option(
    "--timeout", type=Finite(min=1), metavar="SECONDS", help="Time limit for reading the machine."
)
@options.report_format
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show every phase of every option, and what fits on other GPUs.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    help="Write ds_config.json, launch.sh and launch.json to DIR.",
)
@click.option("--prove", is_flag=True, help="Run `smoke` with these settings right away.")
def command(
    *,
    model_name: str,
    layers: int | None,
    hidden: int | None,
    heads: int | None,
    vocab: int | None,
    measure: bool | None,
    stage: int | None,
    offload: str | None,
    python: str | None,
    gpus: str | None,
    nodes: int | None,
    hosts: str | None,
    hostfile: str | None,
    seq_len: int | None,
    micro_batch: int | None,
    global_batch: int | None,
    precision: str | None,
    finetune: str,
    lora_rank: int,
    lora_dropout: bool,
    lora_fp32: bool,
    modules_to_save: str | None,
    fused_loss: bool,
    loads_first: bool,
    deepspeed: str | None,
    transformers: str | None,
    optimizer: str,
    attention: str | None,
    image_tokens: int | None,
    checkpointing: str | None,
    launcher: str | None,
    objective: str,
    master_port: int | None,
    like: str | None,
    from_file: str | None,
    gpu_memory: float | None,
    gpu_count: int | None,
    gpu_cc: str | None,
    host_memory: float | None,
    cpus: int | None,
    cpu_ranks: int | None,
    script: str,
    framework: str | None,
    slurm: bool,
    timeout: float | None,
    form: str,
    verbose: bool,
    folder: str | None,
    prove: bool,
) -> int:
    """Compute launch settings for a model on this machine, or on one that you describe.

    Chooses the first setting that fits with headroom: a lower ZeRO stage before a higher, no
    offload before offload, a bigger micro-batch before accumulation. docs/recommend.md derives the
    figures.

    Exit status: 0 a setting fits, 1 none fits, 2 misuse; with `--prove`, that of `smoke`.

    \b
    Examples:
      dsdoctor recommend --model qwen2.5-7b --seq-len 4096 --global-batch 64
      dsdoctor recommend --model ./my-model/config.json --gpus 0,1 --finetune lora
      dsdoctor recommend --model llama-3-8b --stage 2 --micro-batch 4 --measure
      dsdoctor recommend --model llama-3-8b --like 8xH100-SXM --host-memory 1000
      dsdoctor recommend --model 27B --gpu-memory 80 --gpu-count 8
      dsdoctor recommend --model gpt2 --gpus 0,1 --prove -o run
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    form = html.form_of(form, folder)
    folder, page = html.places(form, folder)
    if slurm and folder is None:
        raise UsageError("`--slurm` writes a file; pass its folder with `-o DIR`")
    if prove and form == "html":
        raise UsageError(
            "`--prove` and `--format html` are mutually exclusive; run "
            "`dsdoctor smoke --plan DIR -o proof.html` on the folder that `-o DIR` writes"
        )
    target = Target(
        gpus=gpus,
        from_file=from_file,
        like=like,
        gpu_memory=gpu_memory,
        gpu_count=gpu_count,
        gpu_cc=gpu_cc,
        host_memory=host_memory,
        cpus=cpus,
        timeout=timeout,
    )
    target.refuse_conflicts()
    if prove:
        proving.refuse(
            elsewhere=target.elsewhere, launcher=launcher, nodes=nodes, hostfile=hostfile
        )
    host = LocalHost()
    given = {"layers": layers, "hidden": hidden, "heads": heads, "vocab": vocab}
    subject = measuring.subject(host, model_name, python, wanted=measure, given=given)
    named = launch_site.host_names(host, hosts, hostfile, nodes)
    machine = target.machine()
    here = target.elsewhere is None
    if cpu_ranks is not None and machine.devices:
        raise UsageError(
            f"`--cpu {cpu_ranks}` requests ranks on CPUs, but the plan is for "
            f"{len(machine.devices)} GPUs; leave it out"
        )
    port, port_note = launch_site.port(host, master_port, named, look=here)
    programs, program_notes = launch_site.programs(
        host, python, launcher or "deepspeed", look=here or python is not None
    )
    machine = dataclasses.replace(machine, notes=(*machine.notes, *port_note, *program_notes))
    plan = subject.plan(
        machine,
        PlanOptions(
            nodes=nodes or len(named) or 1,
            sequence=seq_len,
            micro_batch=micro_batch,
            global_batch=global_batch,
            precision=precision,
            finetune=finetune,
            stage=stage,
            offload=offload,
            lora_rank=lora_rank,
            lora_dropout=lora_dropout,
            lora_fp32=lora_fp32,
            modules_to_save=tuple(filter(None, (modules_to_save or "").split(","))),
            fused_loss=fused_loss,
            loads_first=loads_first,
            deepspeed=None if deepspeed is None else releases.parse_option(deepspeed),
            transformers=launch_site.release_of(
                host, python, "transformers", look=here or python is not None
            )
            if transformers is None
            else releases.parse_option(transformers, "--transformers", "5.15.0"),
            liger=launch_site.release_of(
                host, python, "liger-kernel", look=fused_loss and (here or python is not None)
            ),
            optimizer=optimizer,
            attention=attention,
            image_tokens=image_tokens,
            checkpointing=None if checkpointing is None else checkpointing == "on",
            launcher=launcher,
            objective=objective,
            cpu_ranks=cpu_ranks or 1,
            master_port=port,
            hosts=named,
            script=script,
            framework=framework or (HF if of_script(script) == HF else NATIVE),
            programs=programs,
        ),
    )
    written = files.write(plan, folder, slurm=slurm) if folder is not None else ()
    if form == "html":
        html.write(lambda: _page(plan, folder), page)
    elif not (prove and plan.fits and form == "json"):
        _print(plan, form, folder, verbose=verbose)
    for path in written:
        click.echo(f"wrote {path}", err=True)
    if prove and plan.fits:
        return proving.run(
            plan,
            subject.shape,
            python,
            form=form,
            folder=folder,
            hostfile=hostfile,
            verbose=verbose,
        )
    return 0 if plan.fits else 1


def _page(plan: LaunchPlan, folder: str | None) -> str:
    from dsdoctor.report.html import launch_plan as pages  # noqa: PLC0415  # an extra

    return pages.page(plan, folder)


def _print(plan: LaunchPlan, form: str, folder: str | None, *, verbose: bool) -> None:
    if form == "json":
        click.echo(loading.harmless(encode(plan).decode()))
        return
    text = render(plan, shutil.get_terminal_size().columns, folder, verbose=verbose)
    if wants_colour():
        text = "".join(colored_plan(text.splitlines(keepends=True)))
    click.echo(text, nl=False, color=wants_colour())
