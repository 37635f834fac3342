"""Pure parts of the fleet: names, frames, drift, what stands between nodes, the report."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.errors import UsageError
from dsdoctor.fleet import bundle, cross, frames, merge, replay, report
from dsdoctor.fleet.names import expand, fold
from dsdoctor.fleet.nodes import NodeFinding, NodeReport, silent
from dsdoctor.fleet.replay import FleetNode
from dsdoctor.probes.children import collector
from dsdoctor.probes.nvidia import SECURE_BOOT


@given(st.lists(st.integers(0, 1200), min_size=1, max_size=60), st.sampled_from([0, 3, 4]))
def test_folding_and_unfolding_are_inverse(numbers: list[int], width: int) -> None:
    names = {f"gpu{number:0{width}d}" for number in numbers}
    assert set(expand(fold(names))) == names


def test_what_the_issue_writes() -> None:
    names = [f"gpu{number:03d}" for number in [*range(1, 38), 41]]
    assert fold(names) == "gpu[001-037,041]"
    assert len(expand("gpu[001-512]")) == 512


@pytest.mark.parametrize(
    "text", ["", ",", "a[1-", "a[3-1]", "a[x]", "a b", "-oProxyCommand=x", "a[1-9999999]"]
)
def test_misuse_of_names(text: str) -> None:
    if text == "-oProxyCommand=x":
        assert "=" in text  # `=` is in no name, so nothing can pass for an option of ssh
    with pytest.raises(UsageError):
        expand(text)


def node(name: str, **more: Any) -> NodeReport:
    traits = {"driver": "580.95.05", "torch": "2.13.0+cu130", "GPUs": "8 × NVIDIA H200"}
    return msgspec.structs.replace(
        NodeReport(name=name, verdict="healthy", traits=traits, gpus=8), **more
    )


def drifted(name: str, **traits: str) -> NodeReport:
    plain = node(name)
    return node(name, traits={**plain.traits, **traits})


def test_identical_nodes_are_folded_and_the_drifting_one_named() -> None:
    nodes = [node(f"gpu{n:03d}") for n in range(1, 41)]
    nodes.append(drifted("gpu041", driver="535.104.05"))
    made = merge.merge(nodes)
    assert [g.nodes for g in made.groups] == ["gpu[001-040]", "gpu041"]
    (finding,) = made.findings
    assert (finding.status, finding.nodes) == ("warn", "gpu041")
    assert "535.104.05" in finding.message
    assert "580.95.05" in finding.message
    assert made.verdict == "healthy"


@pytest.mark.parametrize("trait", ["torch", "DeepSpeed", "NCCL", "Python"])
def test_versions_that_meet_in_a_collective_must_be_alike(trait: str) -> None:
    alike = [drifted(name, **{trait: "one"}) for name in ("a", "b")]
    made = merge.merge([*alike, drifted("c", **{trait: "other"})])
    assert made.findings[0].status == "fail"
    assert merge.exit_code(made) == 1


@pytest.mark.parametrize(
    "trait",
    [
        "driver",
        "CUDA of the driver",
        "CUDA of torch",
        "GPUs",
        "VBIOS",
        "kernel",
        "firmware mlx5_0",
        "mount /data",
        "variable OMP_NUM_THREADS",
    ],
)
def test_what_drifts_is_named_with_a_way_out(trait: str) -> None:
    nodes = [node(f"n{n}") for n in range(4)]
    alike = [msgspec.structs.replace(one, traits={**one.traits, trait: "one"}) for one in nodes]
    alike[2] = msgspec.structs.replace(alike[2], traits={**nodes[2].traits, trait: "two"})
    (finding,) = merge.merge(alike).findings
    assert (finding.condition, finding.status, finding.nodes) == ("fleet-drift", "warn", "n2")
    verb = "are" if trait == "GPUs" else "is"
    assert finding.message == f"{trait} {verb} `two`, but the majority has `one`"
    assert finding.hint
    del alike[2].traits[trait]
    (finding,) = merge.merge(alike).findings
    absent = "not set" if trait.startswith("variable ") else "not reported"
    assert finding.message == f"{trait} {verb} {absent}, but the majority has `one`"


@pytest.mark.parametrize("silent", [1, 3])
def test_a_version_that_is_not_reported_is_not_known_to_differ(silent: int) -> None:
    nodes = [node(f"n{n}") for n in range(4)]
    nodes[:silent] = [msgspec.structs.replace(one, traits={}) for one in nodes[:silent]]
    found = {one.evidence["trait"]: one for one in merge.merge(nodes).findings}
    assert found["torch"].status == "warn"
    assert "not report" in found["torch"].message
    assert "dsdoctor check" in (found["torch"].hint or "")


def test_of_two_nodes_none_is_the_majority() -> None:
    pair = [node("n0"), node("n1")]
    pair[1] = msgspec.structs.replace(pair[1], traits={**pair[1].traits, "GPUs": "1 × T4"})
    (finding,) = merge.merge(pair).findings
    have = pair[0].traits["GPUs"]
    assert finding.message == f"GPUs are `1 × T4`, but n0 has `{have}`"


def test_the_collector_tells_firmware_and_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dsdoctor.fleet.traits import traits_of
    from dsdoctor.model.facts.base import Missing, Why
    from dsdoctor.probes.children import collector

    device = tmp_path / "rdma" / "mlx5_0"
    device.mkdir(parents=True)
    (device / "fw_ver").write_text("28.39.1002\n")
    mounts = tmp_path / "mounts"
    pods = "".join(f"overlay /pods/{n}/{'x' * 80} overlay rw 0 0\n" for n in range(300))
    mounts.write_text(f"{pods}nfs1:/export /data nfs4 rw,hard 0 0\n/dev/sda1 / ext4 rw 0 0\n")
    monkeypatch.setattr(collector, "RDMA_DEVICES", str(tmp_path / "rdma"))
    monkeypatch.setattr(collector, "MOUNTS", str(mounts))
    told = collector.node_facts({"resolve": [], "connect": []})
    fact = FleetNode(firmware=told["firmware"], mounts=told["mounts"])

    class Only:
        def get(self, kind: type) -> Any:
            return fact if kind is FleetNode else Missing(why=Why.ABSENT, detail="")

    assert traits_of(Only()) == {
        "firmware mlx5_0": "28.39.1002",
        "mount /data": "nfs4 nfs1:/export",
    }


def test_alike_nodes_have_no_findings() -> None:
    made = merge.merge([node("a"), node("b")], cross.between([node("a"), node("b")]))
    assert made.findings == []
    assert merge.exit_code(made) == 0


def test_a_golden_snapshot_may_be_the_minority() -> None:
    made = merge.merge([node("a"), node("b")], golden={**node("x").traits, "driver": "600"})
    assert made.findings[0].nodes == "a,b"
    assert "golden" in made.findings[0].message


def test_a_variable_says_which_are_passed_on() -> None:
    made = merge.merge([node("a"), node("b"), drifted("c", **{"variable CUDA_HOME": "/x"})])
    assert ".deepspeed_env" in made.findings[0].hint


def test_silent_nodes_are_findings_and_folded() -> None:
    nodes = [node("g1"), *(silent(f"g{n}", f"ssh: g{n}: no route") for n in (2, 3))]
    made = merge.merge(nodes)
    assert made.findings[0].condition == "fleet-node-silent"
    assert made.findings[0].nodes == "g[2-3]"
    assert made.counts["silent"] == 2
    assert made.findings[0].message == "no report: ssh: NODE: no route"
    assert merge.exit_code(made) == 1
    (alone,) = merge.merge([silent("g2", "ssh: g2: no route")]).findings
    assert alone.message == "no report: ssh: g2: no route"


def test_findings_of_nodes_stand_together_worst_first() -> None:
    bad = NodeFinding(status="fail", id="DSD601", condition="gpu-lost", message="GPU 3 is lost")
    warn = NodeFinding(status="warn", id="DSD9", condition="w", message="m")
    nodes = [node(f"n{i}", findings=(warn,)) for i in range(5)]
    nodes.append(node("n9", findings=(bad, warn), verdict="faulty"))
    made = merge.merge(nodes)
    assert [(f.condition, f.count) for f in made.findings] == [("gpu-lost", 1), ("w", 6)]


def between(*nodes: NodeReport, **more: Any) -> list[tuple[str, str]]:
    return [(f.condition, f.nodes) for f in cross.between(list(nodes), **more)]


def placed(name: str, **fields: Any) -> NodeReport:
    return node(name, node=FleetNode(**fields))


def test_names_both_ways() -> None:
    a = placed("a", addresses=("10.0.0.1",), resolved={"a": ("10.0.0.1",), "b": ("10.0.0.2",)})
    b = placed("b", addresses=("10.0.0.2",), resolved={"a": ("10.0.0.1",), "b": ("10.0.0.2",)})
    assert between(a, b) == []
    loop = placed("b", addresses=("10.0.0.2",), resolved={"b": ("127.0.1.1",)})
    assert between(a, loop) == [("fleet-name-resolution", "b")]
    lost = placed("b", resolved={"a": "error: Name or service not known"})
    assert between(a, lost) == [("fleet-name-resolution", "b")]
    wrong = placed("b", resolved={"a": ("10.9.9.9",)})
    assert between(a, wrong) == [("fleet-name-resolution", "b")]


def test_a_node_with_several_addresses_is_healthy() -> None:
    a = placed("a", addresses=("10.0.0.1", "192.168.0.1", "127.0.0.1"), resolved={})
    b = placed("b", resolved={"a": ("192.168.0.1", "fe80::1")})
    assert between(a, b) == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("refused", []),
        ("connected", ["fleet-port-taken"]),
        ("no answer within 3 s", ["fleet-port-blocked"]),
        ("No route to host", ["fleet-port-blocked"]),
    ],
)
def test_ports(answer: str, expected: list[str]) -> None:
    nodes = [
        placed("a", connected={"a:29500": "refused"}),
        placed("b", connected={"a:29500": answer}),
    ]
    assert [name for name, _ in between(*nodes, master="a:29500")] == expected


def test_interfaces() -> None:
    nodes = [
        placed("a", interfaces={"lo": "unknown", "eth0": "up", "ib0": "up"}),
        placed("b", interfaces={"lo": "unknown", "eth0": "up", "ib0": "down"}),
    ]
    assert between(*nodes, socket_ifname="ib") == [("fleet-interface-missing", "b")]
    assert between(*nodes, socket_ifname="eth,ib") == []
    assert between(*nodes, socket_ifname="^lo,docker") == []
    assert between(*nodes, socket_ifname="=eth") == [("fleet-interface-missing", "a,b")]


def test_an_interface_that_only_the_nodes_themselves_name() -> None:
    """A variable of `/etc/environment` counts where the launching machine says nothing."""
    traits = {"variable NCCL_SOCKET_IFNAME": "ib0"}
    both = FleetNode(interfaces={"lo": "unknown", "eth0": "up", "ib0": "up"})
    one = FleetNode(interfaces={"lo": "unknown", "eth0": "up"})
    nodes = [
        node("a", node=both, traits=traits),
        node("b", node=one, traits=traits),
        node("c", node=one),
    ]
    assert between(*nodes) == [("fleet-interface-missing", "b")]
    assert between(*nodes, socket_ifname="eth0") == []


def test_slots() -> None:
    nodes = [node("a"), node("b", gpus=7), node("c", gpus=None)]
    assert between(*nodes, slots={"a": 8, "b": 8, "c": 8}) == [("fleet-hostfile-slots", "b")]
    assert between(node("a"), slots={"a": 4})  # fewer slots than GPUs: some stay idle
    assert between(node("a", gpus=0), slots={"a": 1}) == []  # a run on CPUs


def test_clocks_are_measured_against_each_other() -> None:
    ours_is_wrong = [placed(n, clock_offset_s=-900.0 + i) for i, n in enumerate("abc")]
    assert between(*ours_is_wrong) == []
    late = [placed("a", clock_offset_s=0.1), placed("b", clock_offset_s=0.2)]
    assert between(*late, placed("c", clock_offset_s=40.0)) == [("fleet-clock-skew", "c")]


def test_a_thousand_nodes_fit_one_screen() -> None:
    rng = random.Random(1)
    nodes = []
    for number in range(1, 1001):
        name = f"gpu{number:04d}"
        if number % 100 == 7:
            nodes.append(silent(name, "no answer within 60 s"))
        elif number % 50 == 3:
            nodes.append(drifted(name, driver=rng.choice(["535.104.05", "570.1"])))
        elif number % 97 == 0:
            bad = NodeFinding(status="fail", id="DSD601", condition="gpu-lost", message="lost")
            nodes.append(node(name, findings=(bad,), verdict="faulty"))
        else:
            nodes.append(node(name))
    made = merge.merge(nodes)
    text = report.text(made, width=100)
    assert len(text.splitlines()) <= 40
    for width in (60, 80, 120):
        lines = report.text(made, width=width).splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= width
    assert text.startswith("1000 nodes: ")
    assert text.index("FAIL") < text.index("WARN")
    assert "identical" in text
    assert "identical (" in text
    assert "driver 570.1" in text.split("identical")[1], "a group says in what it differs"
    decoded = msgspec.json.decode(report.json(made), type=merge.FleetReport)
    assert decoded == made


def test_frames_survive_mixing_and_prefixes() -> None:
    text = bundle.collector()
    done = subprocess.run(
        [sys.executable, "-", "--name", "n1"], input=text.encode(), capture_output=True, check=True
    )
    lines = done.stdout.splitlines()
    other = [line.replace(b" n1 ", b" n2 ") for line in lines]
    mixed = [b"n1: " + line for line in lines] + [b"3: " + line for line in other]
    random.Random(2).shuffle(mixed)
    said = frames.Channels()
    whole = b"\n".join([b"n1: welcome", *mixed, b"noise"]) + b"\n"
    for start in range(0, len(whole), 777):
        said.take(whole[start : start + 777])
    said.end()
    assert set(said) == {"n1", "3"}
    assert said.document("n1") == frames.document(lines)
    assert said.document("3") == frames.document(other)
    with pytest.raises(frames.BrokenFramesError, match="lines arrived"):
        frames.document(lines[:-1])
    assert frames.document([]) is None


def test_a_broken_recording_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"a recording is broken: .*missing required field"):
        replay.snapshot_of({"schema": "dsdoctor/recording"})


def test_the_collector_reads_what_the_live_probes_read(tmp_path: Path) -> None:
    """The same facts by the collector and by the doctor on the spot."""
    from dsdoctor.collect import collect
    from dsdoctor.host import LocalHost
    from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo, Resources
    from dsdoctor.model.facts.python import PatientChoice, TorchBuild
    from dsdoctor.model.facts.run import RunNeeds
    from dsdoctor.probes import builtin

    done = subprocess.run(
        [sys.executable, "-", "--python", sys.executable],
        input=bundle.collector().encode(),
        capture_output=True,
        check=True,
    )
    recording = frames.document(done.stdout.splitlines())
    assert recording is not None
    there = replay.snapshot_of(recording)
    given = [RunNeeds(quick=True), PatientChoice(executable=sys.executable, chosen_by="fleet")]
    kinds: set[type] = {NvidiaKernel, OsInfo, Resources, TorchBuild}
    here = collect(LocalHost(), given, builtin(), wanted=kinds)
    for kind in (NvidiaKernel, OsInfo, Resources, TorchBuild):
        left, right = there.facts.get(kind.key()), here.facts.get(kind.key())
        for volatile in ("memory_available_bytes", "shm_free_bytes"):
            for side in (left, right):
                if side:
                    side.pop(volatile, None)
        assert left == right, kind


def test_the_collector_reads_whether_secure_boot_is_on() -> None:
    assert SECURE_BOOT in collector.FILES


def test_the_collector_is_one_file_for_old_pythons() -> None:
    import ast

    text = bundle.collector()
    tree = ast.parse(text, feature_version=(3, 8))
    names = {
        alias.name.split(".")[0]
        for part in ast.walk(tree)
        if isinstance(part, ast.Import)
        for alias in part.names
    }
    assert names <= sys.stdlib_module_names
    assert len(text) < 128 << 10  # one word of a command line: pdsh


@pytest.mark.parametrize("word", ["--patient", "python", "--python"])
def test_the_collector_refuses_what_it_does_not_know(word: str) -> None:
    done = subprocess.run(
        [sys.executable, "-", word],
        input=bundle.collector(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"dsdoctor: collector: `{word}` is not an option, or has no value\n"
