"""What is offered where nothing fits has been sized, and fits."""

from __future__ import annotations

import dataclasses
import re

import pytest

from dsdoctor.machines.other_machine import like
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.models import resolve
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.output import command_line
from dsdoctor.recommend.planning import recommend
from dsdoctor.report.launch_plan import render


def planned(machine: str, model: str, **options: object) -> LaunchPlan:
    return recommend(like(machine), resolve(model), PlanOptions(**options))  # type: ignore[arg-type]


def told(plan: LaunchPlan, subject: str) -> str:
    return " ".join(reason.text for reason in plan.reasons if reason.subject == subject)


@pytest.mark.parametrize(
    ("machine", "model", "asked", "way"),
    [
        ("1xRTX 4090", "qwen2.5-14b", {"offload": "none"}, {"finetune": "qlora"}),
        ("1xRTX 4090", "qwen2.5-7b", {"offload": "none"}, {"finetune": "lora"}),
        ("1xA100-80GB", "llama-3-8b", {"offload": "none"}, {"finetune": "lora"}),
    ],
)
def test_what_is_offered_fits(
    machine: str, model: str, asked: dict[str, str], way: dict[str, str]
) -> None:
    plan = planned(machine, model, **asked)
    assert not plan.fits
    ((option, value),) = way.items()
    assert f"`--{option} {value}`" in told(plan, "fit")
    assert planned(machine, model, **(asked | way)).fits


def test_more_gpus_are_offered_where_they_help() -> None:
    plan = planned("2xA100-80GB", "llama-2-13b", offload="none")
    assert not plan.fits
    assert "4 such GPUs (zero-3" in told(plan, "fit")
    assert planned("4xA100-80GB", "llama-2-13b", offload="none").fits


def test_adapters_on_4_bits_are_not_told_to_use_adapters() -> None:
    """DeepSpeed loads 70B in 4 bits on each GPU, so neither length nor number of GPUs helps."""
    plan = planned("2xRTX 4090", "llama-3.1-70b", finetune="qlora")
    assert not plan.fits
    assert told(plan, "fit") == ("nothing fits; any one of these would: as many GPUs of 48 GB")
    assert "FSDP with QLoRA" in told(plan, "fsdp")
    assert planned("2xRTX A6000", "llama-3.1-70b", finetune="qlora").fits


def test_only_what_comes_closest_is_itemized() -> None:
    plan = planned("2xRTX 4090", "llama-3.1-70b", finetune="qlora")
    assert render(plan).count("memory of each GPU at the peak, GiB") == 1
    assert render(plan, verbose=True).count("memory of each GPU, GiB") > 1


def test_headroom_is_named_only_where_it_decides() -> None:
    plan = planned("2xRTX 4090", "llama-3.1-70b", finetune="qlora")
    assert "headroom" not in plan.memory.options[0].reason


def test_host_memory_that_nobody_stated_is_a_condition() -> None:
    plan = planned("4xA100-SXM4-40GB", "llama-3.1-405b")
    assert plan.fits
    assert "if the host has 9122 GiB" in " ".join(row.reason for row in plan.memory.options)
    assert "9122.1 GiB of memory are needed on each host" in told(plan, "host")
    assert "fits if each host has 9122.1 GiB: " in " ".join(render(plan).split())
    sure = planned("8xA100-SXM4-80GB", "qwen2.5-7b")
    assert not told(sure, "host")
    assert " fits: " in render(sure)


def test_a_larger_gpu_does_not_replace_memory_of_the_host() -> None:
    machine = dataclasses.replace(like("8xH100-SXM"), host_bytes=1000 << 30)
    plan = recommend(machine, resolve("400B"), PlanOptions(offload="optimizer+parameters"))
    assert not plan.fits
    offered = re.search(r"hosts with (\d+) GiB of memory", told(plan, "fit"))
    assert offered is not None
    assert "GPUs with more" not in told(plan, "fit")
    roomy = dataclasses.replace(machine, host_bytes=int(offered[1]) << 30)
    assert recommend(roomy, resolve("400B"), PlanOptions(offload="optimizer+parameters")).fits


@pytest.mark.parametrize(
    ("machine", "model", "said"),
    [
        ("8xH100-SXM", "llama-3-8b", "fits: micro-batch"),
        ("2xRTX 4090", "llama-3.1-70b", "nothing fits; "),
    ],
)
def test_the_verdict_and_the_launch_line_come_first(machine: str, model: str, said: str) -> None:
    plan = planned(machine, model, offload="none")
    lines = render(plan).splitlines()
    verdict = next(place for place, line in enumerate(lines) if said in line)
    launch = lines.index(f"  {command_line(plan, None)}")
    option = lines.index(next(line for line in lines if "[" in line and "#" in line))
    assert verdict < launch < option
    assert launch < 14


def test_the_reasons_of_what_fits_as_well_are_told_on_request() -> None:
    plan = planned("8xH100-SXM", "llama-3-8b")
    assert "alternative: " not in render(plan)
    assert "alternative: " in render(plan, verbose=True)


def test_without_gpus_the_memory_of_the_host_is_named() -> None:
    cpus = Machine(devices=(), host_bytes=24 << 30)
    plan = recommend(cpus, resolve("7B"), PlanOptions())
    assert not plan.fits
    assert re.search(r"`--finetune lora` \(zero-0, [1-9][\d.]+ GiB\)", told(plan, "fit"))
