"""A job against a machine that was read elsewhere, and this environment on another machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import compose, packs
from dsdoctor.errors import UsageError
from dsdoctor.host import LocalHost
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus, Nvml
from dsdoctor.model.facts.launch import MasterPort
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    ImportOutcome,
    PatientChoice,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.script import (
    ScriptCalls,
    ScriptImports,
    ScriptOptions,
    ScriptPaths,
    ScriptSyntax,
)
from dsdoctor.model.products import PRODUCTS
from dsdoctor.packs.registry import gives
from dsdoctor.probes import builtin
from tests.paste.test_judged import run


def node(driver: str = "580.95.05") -> snapshots.Snapshot:
    """A node with two H100 and an environment of its own."""
    gpus = tuple(
        Gpu(
            index=index,
            name="NVIDIA H100 80GB HBM3",
            cc_major=9,
            cc_minor=0,
            memory_total_bytes=81559 << 20,
            memory_free_bytes=81559 << 20,
        )
        for index in range(2)
    )
    return snapshots.of(
        [
            Nvml(driver_version=driver),
            Gpus(gpus=gpus, count=2),
            OsInfo(system="Linux", release="6", machine="x86_64", hostname="gpu-node"),
            TorchBuild(version="2.5.1+cu124", cuda="12.4"),
            DeepSpeedInstall(version="0.16.0"),
            PatientChoice(executable="/opt/venv/bin/python", chosen_by="--python"),
        ]
    )


def login() -> snapshots.Snapshot:
    """A login node without a GPU, with torch for CUDA 13."""
    return snapshots.of(
        [
            OsInfo(system="Linux", release="5", machine="x86_64", hostname="login"),
            Gpus(gpus=(), count=0),
            TorchBuild(version="2.11.0+cu130", cuda="13.0"),
            TorchLive(imported=ImportOutcome(ok=True), cuda_ok=False),
            DeepSpeedInstall(version="0.19.8"),
            PatientChoice(executable="/home/a/venv/bin/python", chosen_by="VIRTUAL_ENV"),
        ]
    )


@pytest.fixture
def node_file(tmp_path: Path) -> str:
    path = tmp_path / "gpu-node.json"
    path.write_bytes(node().to_json())
    return str(path)


def findings(output: str) -> dict[str, str]:
    document: dict[str, Any] = json.loads(output)
    return {row["condition"]: row["status"] for row in document["findings"]}


def test_ports_of_this_machine_are_not_those_of_the_other() -> None:
    here = login()
    here.facts[MasterPort.key()] = {"port": 29500, "taken": True}
    found = compose.composed(here, node(), "the node").get(MasterPort)
    assert isinstance(found, Missing)


def test_a_snapshot_knows_the_port_of_its_own_job_alone(tmp_path: Path) -> None:
    read = node()
    read.facts[MasterPort.key()] = {"port": 29500, "asked": True, "taken": True}
    path = tmp_path / "node.json"
    path.write_bytes(read.to_json())
    (tmp_path / "t.py").write_text("")
    assert "port-in-use" in run("check", "--from", str(path))[1]
    command = ("--", "torchrun", "--master_port", "6000", str(tmp_path / "t.py"))
    assert "port-in-use" not in run("check", "--from", str(path), *command)[1]


def test_a_snapshot_takes_a_config(node_file: str, tmp_path: Path) -> None:
    config = tmp_path / "bad.json"
    config.write_text('{"zero_optimization": {"stage": 7}, "train_batch_size": 8}')
    status, output = run("check", "--from", node_file, "--format", "json", "--config", str(config))
    assert status == 1
    bad = [name for name, word in findings(output).items() if word == "fail"]
    assert bad, "stage 7 is refused"
    assert all(name.startswith("ds-config") for name in bad)
    assert json.loads(output)["origin"] == f"this job on the machine of `{node_file}`"


def test_a_snapshot_takes_gpus_and_a_command(node_file: str) -> None:
    _, output = run(
        "check", "--from", node_file, "--format", "json", "--gpus", "0,5",
        "--", "torchrun", "--nproc_per_node", "4", "train.py",
    )  # fmt: skip
    found = findings(output)
    assert found["visible-devices-invalid"] == "fail"
    assert found["invalid-device-ordinal"] == "fail"


def test_a_snapshot_takes_a_model(node_file: str, tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text(
        '{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},'
        ' "zero_optimization": {"stage": 0}, "optimizer": {"type": "AdamW"}}'
    )
    arguments = ["check", "--from", node_file, "--format", "json", "--config", str(config)]
    _, output = run(*arguments, "--model", "70B", "--finetune", "full")
    assert findings(output)["plan-exceeds-gpu-memory"] == "fail"


def test_options_that_name_two_machines_are_refused(node_file: str) -> None:
    with pytest.raises(UsageError, match="`--from` and `--like` are mutually exclusive"):
        run("check", "--from", node_file, "--like", "8xH100-SXM")
    with pytest.raises(UsageError, match="`--driver` requires `--like`"):
        run("check", "--driver", "550")
    with pytest.raises(UsageError, match="omit `--python`"):
        run("check", "--from", node_file, "--python", "python3")


def test_composed_takes_each_fact_from_where_it_belongs() -> None:
    made = compose.composed(login(), node("535.104.05"), "the machine of `n.json`")
    gpus, nvml, torch = made.get(Gpus), made.get(Nvml), made.get(TorchBuild)
    system, live = made.get(OsInfo), made.get(TorchLive)
    assert not isinstance(gpus, Missing)
    assert gpus.count == 2
    assert not isinstance(nvml, Missing)
    assert nvml.driver_version == "535.104.05"
    assert not isinstance(torch, Missing)
    assert torch.cuda == "13.0"
    assert not isinstance(system, Missing)
    assert system.hostname == "gpu-node"
    assert isinstance(live, Missing), "neither machine tried this environment on that driver"
    assert made.origin == "this environment on the machine of `n.json`"


def test_a_composed_machine_shows_what_neither_shows_alone() -> None:
    from dsdoctor.judge import judge

    registry = packs.load()

    def verdict(snapshot: snapshots.Snapshot) -> str:
        report = judge(snapshot, list(registry), registry)
        return {f.condition: f.status.value for f in report.findings}["driver-too-old"]

    old = node("535.104.05")
    assert verdict(old) == "ok"
    assert verdict(login()) == "skip"
    assert verdict(compose.composed(login(), old, "n")) == "fail"


def test_a_machine_like_a_product() -> None:
    made = compose.machine_like("8xH100-SXM", "550.54.15")
    gpus = made.get(Gpus)
    assert not isinstance(gpus, Missing)
    assert len(gpus.gpus) == 8
    assert gpus.gpus[7].name == "NVIDIA H100 80GB HBM3"
    assert gpus.gpus[7].cc == (9, 0)
    assert isinstance(compose.machine_like("2xGeForce RTX 4090", None).get(Nvml), Missing)


def test_what_nobody_said_of_a_machine_like_a_product_is_not_judged() -> None:
    from dsdoctor.judge import judge

    registry = packs.load()
    made = compose.composed(login(), compose.machine_like("8xH100-SXM", "550.54.15"), "n")
    made = snapshots.from_json(made.to_json(), "n.json")
    report = judge(made, list(registry), registry)
    told = {f.condition: f.status.value for f in report.findings}
    silent = ("nvml-unusable", "gpu-busy", "persistence-mode-off", "driver-library-mismatch")
    assert {told[name] for name in silent} == {"skip"}
    assert (told["mixed-gpus"], told["driver-too-old"]) == ("ok", "fail")
    assert "assumed: all memory of its GPUs is free" in report.notes
    assert not any("stated_at" in f.evidence for f in report.findings)


@pytest.mark.parametrize("text", ["8xH1", "x", "8x", "RTX", "80GB", "8xMI300X"])
def test_a_product_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a known product"):
        compose.machine_like(text, None)


@pytest.mark.parametrize("text", ["0xH200", "-1xH200", "1000 x RTX 4090"])
def test_a_number_of_gpus_that_no_machine_has_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a number of GPUs from 1 to 999"):
        compose.machine_like(text, None)


@pytest.mark.parametrize(
    ("text", "name"), [("GB10", "GB10"), ("2xRTX 3050 Laptop", "GeForce RTX 3050 Laptop GPU")]
)
def test_a_product_whose_memory_is_in_no_table_is_not_called_unknown(text: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"how much memory (?:.* or )?{name}.* is in no table"):
        compose.machine_like(text, None)


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ("1xRTX-4090", 1, "GeForce RTX 4090"),
        ("RTX4090", 1, "GeForce RTX 4090"),
        ("2x2080Ti", 2, "GeForce RTX 2080 Ti"),
        ("8x NVIDIA H100 80GB HBM3", 8, "H100 80GB HBM3"),
        ("8 x HGX H100", 8, "H100 80GB HBM3"),
        ("2xH100 PCIe", 2, "H100 PCIe"),
        ("8xA100 80GB SXM", 8, "A100-SXM4-80GB"),
        ("A100-PCIE-80GB x8", 8, "A100 80GB PCIe"),
        ("4xnvidia-l40s", 4, "L40S"),
        ("4 RTX 6000 Ada", 4, "RTX 6000 Ada Generation"),
        ("8xTesla V100-SXM2-32GB", 8, "V100-SXM2-32GB"),
        ("8xB300", 8, "B300 SXM6 AC"),
        ("8xH200", 8, "H200"),
        ("8xH800", 8, "H800"),
        ("RTX 4060", 1, "GeForce RTX 4060"),
        ("2xRTX 4070 Ti SUPER", 2, "GeForce RTX 4070 Ti SUPER"),
        ("5090 laptop", 1, "GeForce RTX 5090 Laptop GPU"),
        ("8xA800 40GB", 8, "A800-SXM4-40GB"),
        ("1xGH200 96GB", 1, "GH200 480GB"),
    ],
)
def test_spellings_that_only_one_product_has(text: str, count: int, name: str) -> None:
    gpus = compose.machine_like(text, None).get(Gpus)
    assert not isinstance(gpus, Missing)
    assert [gpu.name for gpu in gpus.gpus] == [f"NVIDIA {name}"] * count


def test_spellings_of_several_products_get_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        compose.machine_like("8xA100", None)
    assert str(caught.value) == (
        "`--like 8xA100` matches 5 products; expected one of them: `8xA100-PCIE-40GB`, "
        "`8xA100 80GB PCIe`, `8xA100-SXM4-40GB`, `8xA100-SXM4-80GB`, `8xA100-SXM-64GB`"
    )


@pytest.mark.parametrize(
    ("text", "name", "others"),
    [
        ("8xA100-80GB", "A100 80GB PCIe", "A100-SXM4-80GB (80.0)"),
        ("1xH100", "H100 PCIe", "H100 NVL (93.6) or H100 80GB HBM3 (79.6)"),
    ],
)
def test_products_that_hardly_differ_are_planned_for_as_the_smallest(
    text: str, name: str, others: str
) -> None:
    snapshot = compose.machine_like(text, None)
    gpus = snapshot.get(Gpus)
    assert not isinstance(gpus, Missing)
    assert {gpu.name for gpu in gpus.gpus} == {f"NVIDIA {name}"}
    assert snapshot.assumed[1].endswith(f"it may also mean {others}")
    assert name in snapshot.assumed[1]


def test_each_name_that_is_offered_or_reported_is_accepted() -> None:
    for name in PRODUCTS:
        gpus = compose.machine_like(f"2xNVIDIA {name}", None).get(Gpus)
        assert not isinstance(gpus, Missing)
        assert gpus.gpus[1].name == f"NVIDIA {name}"


def test_a_driver_that_is_no_version_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a driver's version"):
        compose.machine_like("8xH100-SXM", "latest")


def test_the_tables_name_facts_that_probes_read() -> None:
    known = {kind for probe in builtin() for kind in gives(probe.function)}
    assert known >= (compose.NODE | compose.JOB | compose.BOTH)
    assert not compose.NODE & compose.JOB
    assert not compose.BOTH & (compose.NODE | compose.JOB)


def test_the_script_is_not_checked_for_another_machine(tmp_path: Path) -> None:
    """Not with what a snapshot says of the script of another job, and not without a word."""
    machine = snapshots.of([ScriptSyntax(script="/other/train.py", file="/other/train.py", line=3)])
    job = RunNeeds(command=("torchrun", "train.py"), cwd=str(tmp_path))
    made = compose.with_job(machine, job, LocalHost(), packs.load(builtin_only=True))
    for kind in (ScriptSyntax, ScriptImports, ScriptOptions, ScriptCalls, ScriptPaths):
        found = made.get(kind)
        assert isinstance(found, Missing)
        assert found.detail.startswith("the script is not checked for another machine")
