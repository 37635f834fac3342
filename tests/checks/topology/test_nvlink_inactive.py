"""Rows of `nvlink-inactive`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Gpu, Gpus, RunNeeds
from dsdoctor.model.facts.gpu import GpuLink, Unread
from dsdoctor_checks.topology import nvlink_inactive
from tests.checks.gpu.support import NOT_SET, worst


def gpu(index: int, name: str, remotes: str, *, mig: bool = False) -> Gpu:
    """Links: `s` to a switch, a digit to that GPU, `-` inactive, `?` of an unknown state."""
    links = []
    for number, remote in enumerate(remotes):
        state = {"-": 0, "?": 3}.get(remote, 1)
        kind = "SWITCH" if remote == "s" else "GPU"
        bdf = f"bdf{remote}" if state == 1 else None
        links.append(GpuLink(link=number, state=state, remote_type=kind, remote_bdf=bdf))
    return Gpu(index=index, name=name, pci_bdf=f"bdf{index}", links=tuple(links), mig_mode=mig)


def machine(name: str, *remotes: str) -> Gpus:
    return Gpus(gpus=tuple(gpu(index, name, links) for index, links in enumerate(remotes)))


V100 = "Tesla V100-SXM2-32GB"


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (machine("NVIDIA H100 80GB HBM3", "s" * 18, "s" * 18), "ok"),
        (machine("NVIDIA H100 80GB HBM3", "s" * 18, "s" * 17 + "-"), "fail"),
        (machine("NVIDIA H100 80GB HBM3", "s" * 18, "-" * 18), "fail"),
        (machine("NVIDIA H100 80GB HBM3", "s" * 17 + "-"), "fail"),
        (machine("NVIDIA H100 80GB HBM3", "-" * 18), "ok"),
        (machine("NVIDIA X900", "?" * 36, "?" * 36), "ok"),
        (machine("NVIDIA H100 PCIe", "-" * 18, "-" * 18), "ok"),
        (machine("NVIDIA H100 PCIe", "1" * 12 + "-" * 6, "0" * 12 + "-" * 6, "-" * 18), "ok"),
        (machine("NVIDIA H100 PCIe", "1" * 12 + "-" * 6, "0" * 11 + "-" * 7), "fail"),
        (machine("NVIDIA GeForce RTX 3090", "111-", "000-"), "fail"),
        (machine("NVIDIA GeForce RTX 3090", "1111", "0000"), "ok"),
        (machine(V100, "12----", "022---", "011---"), "ok"),
        (machine(V100, "11----", "0-----"), "fail"),
        (Gpus(gpus=(gpu(0, "NVIDIA A100-SXM4-80GB", "s---", mig=True),)), "ok"),
        (Gpus(gpus=(Gpu(index=0),)), "ok"),
    ],
)
def test_rows(fact: Gpus, expected: str) -> None:
    assert worst(nvlink_inactive.links_are_up, fact, RunNeeds(), NOT_SET) == expected


H100 = "NVIDIA H100 80GB HBM3"
NONE = {"virtualization": "NONE"}


def bare(name: str, *remotes: str, **more: Any) -> Gpus:
    """The same on bare metal, where boards with an SXM socket have all of their links."""
    gpus = machine(name, *remotes).gpus
    return Gpus(gpus=tuple(msgspec.structs.replace(one, **{**NONE, **more}) for one in gpus))


NO_LINKS = {"links": None, "unread": {"links": Unread(code=3, name="NOT_SUPPORTED")}}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (bare(H100, "s" * 18, "s" * 18), "ok"),
        (bare(H100, "-" * 18, "-" * 18), "fail"),
        (bare(H100, "", "", **NO_LINKS), "fail"),
        (bare(H100, "-" * 18), "ok"),  # alone: what should it be joined to
        (bare(H100, "-" * 18, "-" * 18, virtualization="PASSTHROUGH"), "ok"),
        (bare(H100, "-" * 18, "-" * 18, mig_mode=True), "ok"),
        (bare(V100, "------", "------"), "fail"),
        (bare("NVIDIA H100 PCIe", "-" * 18, "-" * 18), "ok"),
        (bare("NVIDIA H100 NVL", "-" * 18, "-" * 18), "ok"),
        (bare("NVIDIA H200 NVL", "-" * 18, "-" * 18), "ok"),
        (bare("NVIDIA L40S", "", "", **NO_LINKS), "ok"),
    ],
)
def test_sxm_and_pcie_are_told_apart(fact: Gpus, expected: str) -> None:
    assert worst(nvlink_inactive.links_are_up, fact, RunNeeds(), NOT_SET) == expected


@pytest.mark.parametrize(
    ("speeds", "expected"), [((26562, 26562), "ok"), ((26562, 13281), "warn"), ((0, 26562), "ok")]
)
def test_a_link_that_is_slow(speeds: tuple[int, int], expected: str) -> None:
    links = tuple(
        GpuLink(link=n, state=1, remote_type="SWITCH", speed_mbps=speed)
        for n, speed in enumerate(speeds)
    )
    fact = Gpus(gpus=(Gpu(index=0, name="X", links=links),))
    assert worst(nvlink_inactive.links_are_up, fact, RunNeeds(), NOT_SET) == expected
