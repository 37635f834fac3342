"""`dsdoctor recommend` as a user calls it: real processes, terminals, pipes, mistakes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from dsdoctor.cli.recommend import command
from dsdoctor.model.facts.gpu import Gpu, Gpus
from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.schema import launch_schema
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.recommend import files
from tests.nvml import fakenvml, scenarios
from tests.support.command import Outcome, clean_environment, dsdoctor

GOLDEN = Path(__file__).parent / "golden"
WHAT_IF = ("--gpu-memory", "80", "--gpu-count", "4", "--host-memory", "1000", "--cpus", "64")


def run(tmp_path: Path, *argv: str, **env: str) -> Outcome:
    return dsdoctor("recommend", *argv, env=clean_environment(tmp_path, **env), cwd=tmp_path)


def nvml(tmp_path: Path, scenario: Any, *argv: str, **env: str) -> Outcome:
    """On a machine whose GPUs are those of the fake NVML library, with a host to match."""
    argv = (*argv, "--host-memory", "500")
    return run(tmp_path, *argv, **fakenvml.environment(scenario, tmp_path), **env)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "--model"),
        (("--model", "gpt2-x1"), "the nearest preset is `gpt2-xl`"),
        (("--model", "1.5X"), "`1.5X` is not a model size"),
        (("--model", "empty.json"), "`empty.json` is not JSON"),
        (("--model", "."), "contains no `config.json`"),
        (("--model", "gpt2", "--layers", "3"), "omit it"),
        (("--model", "gpt2", "--gpus", "0"), "no NVIDIA GPU; omit `--gpus`, or plan for another"),
        (("--model", "gpt2", "--gpus", "zero"), "is not a GPU"),
        (("--model", "gpt2", "--nodes", "0"), "--nodes"),
        (("--model", "gpt2", "--nodes", "2", "--hosts", "a"), "lists 1 hosts for `--nodes 2`"),
        (("--model", "gpt2", "--hostfile", "nowhere"), "`--hostfile nowhere` cannot be read"),
        (("--model", "gpt2", "--seq-len", "2048"), "gpt2 has 1024 positions"),
        (("--model", "gpt2", "--seq-len", "many"), "--seq-len"),
        (("--model", "gpt2", "--gpu-count", "8"), "requires `--gpu-memory`; pass both"),
        (("--model", "gpt2", "--like", "8xFoo"), "`--like 8xFoo` is not a known product"),
        (("--model", "gpt2", "--like", "2xT4", "--gpus", "0"), "GPUs with `--like`"),
        (("--model", "gpt2", "--like", "2xT4", *WHAT_IF), "`--like` and `--gpu-memory` are mutual"),
        (("--model", "gpt2", "--like", "2xT4", "--prove"), "but `--like` selects another"),
        (("--model", "gpt2", "--from", "empty.json"), "`empty.json`"),
        (("--model", "gpt2", "--gpus", "0", *WHAT_IF), "number of its GPUs with `--gpu-count`"),
        (("--model", "gpt2", "--cpu", "2", *WHAT_IF), "`--cpu 2` requests ranks on CPUs"),
        (("--model", "gpt2", "--gpu-memory", "nan"), "--gpu-memory"),
        (("--model", "gpt2", "--host-memory", "inf"), "--host-memory"),
        (("--model", "gpt2", "--gpu-cc", "8", *WHAT_IF), "is not a compute capability"),
        (("--model", "gpt2", "--precision", "fp16"), "fp16 was requested on a CPU"),
        (("--model", "gpt2", "--global-batch", "33", *WHAT_IF), "not a multiple of 4"),
        (("--model", "gpt2", "--lora-rank", "8", *WHAT_IF), "`--lora-rank` belongs to adapters"),
        (("--model", "gpt2", "--lora-fp32", *WHAT_IF), "`--lora-fp32` belongs to adapters"),
        (("--model", "gpt2", "--no-lora-dropout", *WHAT_IF), "`--no-lora-dropout` belongs"),
        (("--model", "gpt2", "--slurm"), "pass its folder with `-o DIR`"),
        (("--model", "gpt2", "-o", "empty.json", *WHAT_IF), "cannot be written"),
        (("--model", "gpt2", "--python", "/nowhere"), "/nowhere"),
        (("--model", "gpt2", "--format", "xml"), "--format"),
        (("--model", "gpt2", "--prove", *WHAT_IF), "`--prove` runs on this machine"),
        (("--model", "gpt2", "--prove", "--launcher", "accelerate"), "`--launcher accelerate`"),
        (("--model", "gpt2", "--prove", "--nodes", "2"), "pass `--hostfile`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_mistakes_are_one_line_and_status_2(
    tmp_path: Path, argv: tuple[str, ...], words: str
) -> None:
    (tmp_path / "empty.json").write_text("")
    done = run(tmp_path, *argv)
    assert done.status == 2
    assert done.out == ""
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err


def test_what_does_not_fit_is_not_run(tmp_path: Path) -> None:
    argv = ("--model", "llama-3-70b", "--host-memory", "8", "--prove", "--python", sys.executable)
    done = run(tmp_path, *argv)
    assert done.status == 1
    assert "PASS" not in done.out
    assert "FAIL" not in done.out


def test_nothing_fits_is_status_1(tmp_path: Path) -> None:
    done = run(tmp_path, "--model", "llama-3-70b", "--gpu-memory", "8", "--host-memory", "8")
    assert done.status == 1
    assert "nothing fits; zero-3 comes closest" in done.out
    assert "chosen:" not in done.out


def test_json_keeps_its_schema_and_is_what_smoke_reads(tmp_path: Path) -> None:
    done = run(tmp_path, "--model", "llama-3-8b", *WHAT_IF, "--format", "json", "-o", "run")
    assert done.status == 0
    jsonschema.validate(done.report, json.loads(launch_schema()))
    assert json.loads((tmp_path / "run" / "launch.json").read_text()) == done.report
    assert files.read(tmp_path / "run").fits
    assert [line.removeprefix("wrote run/") for line in done.err.splitlines()] == [
        "ds_config.json",
        "launch.sh",
        "launch.json",
    ]


def test_a_machine_named_by_its_product(tmp_path: Path) -> None:
    argv = ("--model", "qwen2.5-7b", "--like", "8xH100-SXM", "--host-memory", "1000")
    found = run(tmp_path, *argv, "--format", "json").report
    assert found["gpu_names"] == ["NVIDIA H100 80GB HBM3"] * 8
    assert found["precision"] == "bf16"
    limits = {option["gpu_limit_bytes"] for option in found["memory"]["options"]}
    assert limits == {81559 << 20}
    text = run(tmp_path, *argv).out
    assert text.startswith("qwen2.5-7b · 7.62B parameters · 8 × H100 80GB HBM3 ·")
    assert "all memory of its GPUs is assumed to be free" in text


def test_a_name_of_several_products_is_explained_below_the_headline(tmp_path: Path) -> None:
    """An H100 of unknown form is planned for as the one with the least memory."""
    out = run(tmp_path, "--model", "gpt2", "--like", "8xH100").out
    head, _, _ = out.partition("\n\n")
    assert "8 × H100 PCIe" in head
    words = " ".join(head.split())
    assert "`8xH100` is interpreted as H100 PCIe" in words
    assert "may also mean H100 NVL (93.6) or H100 80GB HBM3 (79.6)" in words


def test_the_machine_of_a_snapshot(tmp_path: Path) -> None:
    gpus = [
        Gpu(
            index=index, name="NVIDIA L4", cc_major=8, cc_minor=9,
            memory_total_bytes=24 << 30, memory_free_bytes=20 << 30,
        )
        for index in range(2)
    ]  # fmt: skip
    free = 100 << 30
    snapshot = Snapshot(created="2026-11-20T10:00:00Z")
    snapshot.put(Gpus(count=2, gpus=tuple(gpus)))
    snapshot.put(
        Resources(
            cpus_logical=16,
            cpus_usable=12,
            memory_total_bytes=2 * free,
            memory_available_bytes=free,
        )
    )
    (tmp_path / "node.json").write_bytes(snapshot.to_json())
    argv = ("--model", "gpt2", "--from", "node.json")
    whole = run(tmp_path, *argv)
    assert "2 × L4" in whole.out
    assert "another machine, as it was on 2026-11-20" in whole.out
    one = run(tmp_path, *argv, "--gpus", "1", "--format", "json").report
    assert one["gpu_ids"] == [1]
    option = one["memory"]["options"][0]
    assert (option["gpu_limit_bytes"], option["host_limit_bytes"]) == (20 << 30, free)


def test_this_machine_without_a_gpu(tmp_path: Path) -> None:
    done = run(tmp_path, "--model", "gpt2", "--seq-len", "128", "--cpu", "2")
    assert done.status == 0
    assert "2 × CPU rank" in done.out
    assert "`--gpu-memory GIB` plans for a machine that has one" in " ".join(done.out.split())
    assert "GPU 0.0" not in done.out


def test_a_pipe_has_no_colour_and_a_coloured_one_the_same_words(tmp_path: Path) -> None:
    plain = run(tmp_path, "--model", "gpt2", *WHAT_IF)
    colour = run(tmp_path, "--model", "gpt2", *WHAT_IF, FORCE_COLOR="1")
    assert "\x1b" not in plain.out
    assert "\x1b[32m" in colour.out
    without = colour.out
    for code in ("32m", "1m", "0m", "2m", "31m"):
        without = without.replace(f"\x1b[{code}", "")
    assert without == plain.out


@pytest.mark.parametrize("width", [24, 40, 72, 80, 100, 200])
@pytest.mark.parametrize("verbose", [False, True])
def test_lines_fit_the_terminal_but_for_the_one_to_copy(width: int, *, verbose: bool) -> None:
    argv = ["--model", "llama-3-8b", *WHAT_IF, "--global-batch", "64", *["-v"] * verbose]
    done = CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(command, argv)
    *lines, launch = [line for line in done.output.splitlines() if "ds_config.json" not in line] + [
        next(line for line in done.output.splitlines() if "deepspeed --include" in line)
    ]
    room = max(width, 56)  # a row of the table, which is not broken
    assert [line for line in lines if len(line) > room] == []
    assert launch.startswith("  CUDA_DEVICE_ORDER=PCI_BUS_ID OMP_NUM_THREADS=16 deepspeed ")


def test_help_names_every_option_and_the_order() -> None:
    done = CliRunner().invoke(command, ["--help"])
    assert done.exit_code == 0
    for option in (
        "--model", "--gpus", "--nodes", "--seq-len", "--micro-batch", "--global-batch",
        "--precision", "--finetune", "--optimizer", "--attention", "--checkpointing",
        "--launcher", "--objective", "--slurm", "--python", "--output",
    ):  # fmt: skip
        assert option in done.output
    assert "lower ZeRO stage before a higher" in " ".join(done.output.split())


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt2-xl-narrow", "70b-nothing-fits"])
def test_golden(name: str) -> None:
    """Whole outputs, word by word; `UPDATE_GOLDEN=1` rewrites them."""
    argv, width = {
        "llama-3-8b": (["--model", "llama-3-8b", *WHAT_IF, "-v", "--global-batch", "64"], 100),
        "gpt2-xl-narrow": (["--model", "gpt2-xl", *WHAT_IF, "--gpu-cc", "7.0"], 50),
        "70b-nothing-fits": (["--model", "llama-3-70b", "--gpu-memory", "8"], 80),
    }[name]
    done = CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"}).invoke(command, argv)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(done.output)
    assert done.output == path.read_text()


# ---- machines of the fake NVML -----------------------------------------------------------------

on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="a shared library for Linux"
)


@on_linux
@pytest.mark.system
@pytest.mark.parametrize(
    ("scenario", "gpus", "precision", "name"),
    [
        (scenarios.laptop_mx450, 1, "fp16", "one laptop chip of 2 GB"),
        (scenarios.v100_x4, 4, "fp16", "four V100"),
        (scenarios.a100_x8, 8, "bf16", "eight A100"),
        (scenarios.h200_x8, 8, "bf16", "eight H200"),
        (scenarios.b200_x8, 8, "bf16", "eight B200"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_healthy_machines_get_a_plan(
    tmp_path: Path, scenario: Any, gpus: int, precision: str, name: str
) -> None:
    done = nvml(tmp_path, scenario(), "--model", "gpt2", "--format", "json")
    assert done.status == 0, done.err
    plan = done.report
    assert (plan["world"], plan["precision"]) == (gpus, precision)
    assert plan["gpu_ids"] == list(range(gpus))
    assert len(plan["gpu_uuids"]) == gpus
    assert all(uuid.startswith("GPU-") for uuid in plan["gpu_uuids"])
    assert plan["env"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


@on_linux
@pytest.mark.system
def test_gpus_are_chosen_by_index_and_by_uuid(tmp_path: Path) -> None:
    first = nvml(
        tmp_path, scenarios.h100_x8(), "--model", "gpt2", "--gpus", "5,2", "--format", "json"
    )
    assert first.report["gpu_ids"] == [2, 5]
    assert "localhost:2,5" in first.report["argv"]
    wanted = ",".join(first.report["gpu_uuids"])
    again = nvml(
        tmp_path, scenarios.h100_x8(), "--model", "gpt2", "--gpus", wanted, "--format", "json"
    )
    assert again.report["gpu_ids"] == [2, 5]
    hidden = nvml(
        tmp_path, scenarios.h100_x8(), "--model", "gpt2", "--gpus", "5", CUDA_VISIBLE_DEVICES="0,1"
    )
    assert hidden.status == 2
    assert "which torch numbers 0 to 1" in hidden.err
    gone = nvml(tmp_path, scenarios.h100_x8(), "--model", "gpt2", "--gpus", "8")
    assert gone.status == 2
    assert "GPU `8` does not exist; expected one of 0, 1," in gone.err


@on_linux
@pytest.mark.system
def test_a_sliced_card_gets_the_slices_memory(tmp_path: Path) -> None:
    done = nvml(tmp_path, scenarios.a100_mig(), "--model", "gpt2", "--format", "json")
    assert done.status == 0, done.err
    assert done.report["world"] == 1
    assert done.report["gpu_uuids"][0].startswith("MIG-")
    limit = done.report["memory"]["options"][0]["gpu_limit_bytes"]
    assert limit < 60 * (1 << 30)


@on_linux
@pytest.mark.system
def test_a_mixed_box(tmp_path: Path) -> None:
    done = nvml(tmp_path, scenarios.mixed_a100_3090(), "--model", "gpt2")
    assert done.status == 0
    assert "the GPUs differ" in done.out
    assert "limits all GPUs" in " ".join(done.out.split())


@on_linux
@pytest.mark.system
def test_a_lost_gpu_is_left_out_and_said(tmp_path: Path) -> None:
    done = nvml(tmp_path, scenarios.h200_x8_lost(), "--model", "gpt2", "--format", "json")
    assert done.report["gpu_ids"] == [0, 1, 2, 4, 5, 6, 7]
    texts = [reason["text"] for reason in done.report["reasons"]]
    assert any("GPU 3 is left out: it could not be read" in text for text in texts)
