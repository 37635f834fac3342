"""The matrix of `nvidia-smi topo -m`, built and printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.api import Missing, Why
from dsdoctor.judge import judge
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.matrix import Matrix
from dsdoctor.model.matrix_of import build
from dsdoctor.report import machine_readable, text, topology
from tests.checks import machines
from tests.checks.topology.support import gpus, switch
from tests.checks.topology.support import topology as pairs
from tests.nvml import fakenvml, scenarios
from tests.nvml.test_parse import examine

NOTHING = Missing(why=Why.ABSENT, detail="not there")
REGISTRY = packs.load(builtin_only=True)
BRIDGED = pairs("X NV4 SYS\nNV4 X SYS\nSYS SYS X")


def test_gpus_and_adapters() -> None:
    matrix = build(gpus(3), BRIDGED, switch("gpu", "gpu", "gpu", "mlx5_0"))
    assert matrix is not None
    assert matrix.names == ["GPU0", "GPU1", "GPU2", "mlx5_0"]
    assert matrix.rows == [
        ["X", "NV4", "SYS", "PIX"],
        ["NV4", "X", "SYS", "PIX"],
        ["SYS", "SYS", "X", "PIX"],
        ["PIX", "PIX", "PIX", "X"],
    ]


def test_what_is_not_known_is_a_question_mark() -> None:
    matrix = build(gpus(3), pairs("X NV4\nNV4 X"), NOTHING)
    assert matrix is not None
    assert matrix.rows[2] == ["?", "?", "X"]


@pytest.mark.parametrize("count", [0, 1])
def test_one_device_has_no_matrix(count: int) -> None:
    assert build(gpus(count), BRIDGED, NOTHING) is None
    assert build(NOTHING, BRIDGED, NOTHING) is None


@pytest.mark.parametrize(
    ("width", "first"), [(80, "      GPU0  GPU1  GPU2"), (12, "GPU0-GPU1: NV4")]
)
def test_it_fits_the_terminal(width: int, first: str) -> None:
    matrix = build(gpus(3), BRIDGED, NOTHING)
    assert matrix is not None
    made = list(topology.lines(matrix, width))
    assert made[0].startswith(first)
    assert max(len(line) for line in made) <= max(width, 14)


def full_node() -> Matrix:
    """Eight GPUs and eight adapters, as most nodes for training are."""
    names = [f"GPU{n}" for n in range(8)] + [f"mlx5_{n}" for n in range(8)]
    return Matrix(
        names=names,
        rows=[
            [
                "X" if a == b else "NV18" if max(a, b) < 8 else "PIX" if b - a in (8, -8) else "SYS"
                for b in range(16)
            ]
            for a in range(16)
        ],
        cpus=["0-47,96-143"] * 4 + ["48-95,144-191"] * 4 + [""] * 8,
        numa=[str(n % 8 // 4) for n in range(16)],
    )


@pytest.mark.parametrize(("width", "blocks"), [(80, 2), (120, 2), (160, 1)])
def test_a_full_node_is_a_table_at_usual_widths(width: int, blocks: int) -> None:
    matrix = full_node()
    made = list(topology.lines(matrix, width))
    assert max(map(len, made)) <= width
    assert made.count("") == blocks - 1
    assert len(made) == blocks * 17 + blocks - 1
    tables = "\n".join(made).split("\n\n")
    # every cell is there, below its heading
    for number, name in enumerate(matrix.names):
        (table,) = [text.splitlines() for text in tables if name in text.splitlines()[0].split()]
        at = table[0].index(name)
        assert [row[at:].split()[0] for row in table[1:]] == [r[number] for r in matrix.rows]
    assert made[-16].endswith("0-47,96-143    0")


@pytest.mark.skipif(fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler")
def test_the_report_shows_it_when_asked(tmp_path: Path) -> None:
    parsed = examine(scenarios.v100_x4(), tmp_path)
    assert parsed.gpus is not None
    assert parsed.topology is not None
    snapshot = snapshots.of([machines.LINUX, machines.kernel(), parsed.gpus, parsed.topology])
    report = judge(snapshot, [], REGISTRY)
    shown = text.render(report, verbosity=1, width=100)
    assert "GPU0  X     NV2   NV2   NV2   0-47,96-143    0" in shown
    assert "NV2" not in text.render(report, width=100)
    assert json.loads(machine_readable.json(report))["topology"]["rows"][0] == [
        "X",
        "NV2",
        "NV2",
        "NV2",
    ]


def test_a_report_without_it_has_no_such_key() -> None:
    report = judge(snapshots.of([machines.LINUX]), [], REGISTRY)
    assert "topology" not in json.loads(machine_readable.json(report))
