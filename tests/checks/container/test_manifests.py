"""`manifest-request-mismatch`, `manifest-refused` and `shm-too-small` about manifests."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ManifestContainer, RunNeeds, Status
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.container import manifest_refused, manifest_request_mismatch
from dsdoctor_checks.host import shm_too_small

GPUS = {"nvidia.com/gpu": "8"}


def run(container: ManifestContainer, gpus: int | None = 8, ranks: int | None = None) -> RunNeeds:
    by = "" if gpus is None else f"nvidia.com/gpu: {gpus}"
    return RunNeeds(
        manifest=container, container_gpus=gpus, container_gpus_by=by, container_ranks=ranks
    )


def pod(**more: Any) -> ManifestContainer:
    return ManifestContainer(**{"kind": "Job", "has_devices": True, "limits": GPUS, **more})


def judged(line: str, needs: RunNeeds) -> list[tuple[Status, str]]:
    check = manifest_request_mismatch.request_fits_command
    found = judge(check, launch_command=parse_command(line.split()), run_needs=needs)
    return [(one.status, one.message) for one in found.findings]


@pytest.mark.parametrize(
    ("line", "container"),
    [
        pytest.param("torchrun --nproc_per_node=4 t.py", pod(), id="fewer ranks, on purpose"),
        pytest.param("torchrun t.py", pod(ranks=8, ranks_by="nprocPerNode: 8"), id="by the job"),
        pytest.param("torchrun t.py", pod(ranks_by="nprocPerNode: auto"), id="by a word"),
        pytest.param("python t.py", pod(pods=4, pods_by="x"), id="no launcher"),
        pytest.param("deepspeed t.py", pod(pods=2, pods_by="x"), id="its own nodes"),
        pytest.param("torchrun --nnodes 1:4 --nproc_per_node 8 t.py", pod(pods=2), id="a range"),
        pytest.param(
            "torchrun --nnodes 2 --nproc_per_node 8 t.py", pod(pods=4, elastic=True), id="elastic"
        ),
        pytest.param("deepspeed --num_gpus 8 t.py --use_cpu", pod(has_devices=False), id="on CPUs"),
        pytest.param("torchrun --nproc_per_node 2 t.py", pod(has_devices=False), id="perhaps CPUs"),
        pytest.param(
            "DS_ACCELERATOR=cpu deepspeed --num_gpus 2 t.py", pod(has_devices=False), id="chosen"
        ),
    ],
)
def test_right_manifests(line: str, container: ManifestContainer) -> None:
    assert [status for status, _ in judged(line, run(container))] == [Status.OK]


def test_a_command_in_no_manifest_is_skipped() -> None:
    assert [status for status, _ in judged("torchrun t.py", RunNeeds())] == [Status.SKIP]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("deepspeed --num_gpus 8 t.py", "uses `deepspeed --num_gpus 8`"),
        ("torchrun --nproc_per_node gpu t.py", "uses `--nproc_per_node gpu`"),
        ("torchrun --nproc_per_node 8 t.py --dist-backend nccl", "uses NCCL"),
    ],
)
def test_a_container_without_devices(line: str, words: str) -> None:
    ((status, said),) = judged(line, run(pod(has_devices=False, limits={}), gpus=None))
    assert (status, words in said) == (Status.WARN, True)


def test_each_broken_rule_is_a_failure() -> None:
    rules = tuple(manifest_refused._RULES)
    check = manifest_refused.manifest_is_valid
    found = judge(check, run_needs=run(pod(refused=rules)))
    assert [one.evidence["rule"] for one in found.findings] == [*rules]
    assert {one.status for one in found.findings} == {Status.FAIL}
    assert all("{" not in one.message for one in found.findings)
    right = judge(check, run_needs=run(pod()))
    assert right.statuses == ["ok"]


@pytest.mark.parametrize(
    ("container", "ranks", "status"),
    [
        pytest.param(pod(), 8, Status.WARN, id="several ranks"),
        pytest.param(pod(shm="volume shm"), 8, Status.SKIP, id="a volume"),
        pytest.param(pod(), 1, Status.SKIP, id="one rank"),
        pytest.param(pod(), None, Status.SKIP, id="not known"),
    ],
)
def test_shared_memory(container: ManifestContainer, ranks: int | None, status: Status) -> None:
    found = judge(
        shm_too_small.shm_is_large,
        launch_command=parse_command(["torchrun", "t.py"]),
        run_needs=run(container, ranks=ranks),
    )
    assert found.statuses == [status.value]
