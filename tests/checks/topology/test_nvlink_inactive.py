"""Rows of `nvlink-inactive`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor import packs
from dsdoctor.api import Gpu, Gpus
from dsdoctor.judge import judge as whole
from dsdoctor.model.facts.gpu import GpuLink, Unread
from dsdoctor.paste.environment import environment_of
from dsdoctor.testing import judge
from dsdoctor_checks.topology import nvlink_inactive


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
REGISTRY = packs.load(builtin_only=True)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            machine("NVIDIA H100 80GB HBM3", "s" * 18, "s" * 18),
            "ok",
            id="two H100 with 18 links to the switches",
        ),
        pytest.param(
            machine("NVIDIA H100 80GB HBM3", "s" * 18, "s" * 17 + "-"),
            "fail",
            id="one H100 has one link less",
        ),
        pytest.param(
            machine("NVIDIA H100 80GB HBM3", "s" * 18, "-" * 18), "fail", id="one H100 has no links"
        ),
        pytest.param(
            machine("NVIDIA H100 80GB HBM3", "s" * 17 + "-"),
            "fail",
            id="a single H100 with one link down",
        ),
        pytest.param(
            machine("NVIDIA H100 80GB HBM3", "-" * 18),
            "ok",
            id="a single H100 that is not linked to anything",
        ),
        pytest.param(
            machine("NVIDIA X900", "?" * 36, "?" * 36),
            "skip",
            id="links in a state that is not known yet",
        ),
        pytest.param(
            machine("NVIDIA H100 PCIe", "-" * 18, "-" * 18),
            "ok",
            id="two H100 PCIe without bridges",
        ),
        pytest.param(
            machine("NVIDIA H100 PCIe", "1" * 12 + "-" * 6, "0" * 12 + "-" * 6, "-" * 18),
            "ok",
            id="two H100 PCIe with bridges and a third without",
        ),
        pytest.param(
            machine("NVIDIA H100 PCIe", "1" * 12 + "-" * 6, "0" * 11 + "-" * 7),
            "fail",
            id="one end of a bridge has a link less",
        ),
        pytest.param(
            machine("NVIDIA GeForce RTX 3090", "111-", "000-"),
            "fail",
            id="a bridge of two RTX 3090 with one link down",
        ),
        pytest.param(
            machine("NVIDIA GeForce RTX 3090", "1111", "0000"), "ok", id="a bridge of two RTX 3090"
        ),
        pytest.param(
            machine(V100, "12----", "022---", "011---"),
            "ok",
            id="three V100 that leave some of their links unused",
        ),
        pytest.param(
            machine(V100, "11----", "0-----"),
            "fail",
            id="one end of a link between two V100 is down",
        ),
        pytest.param(
            Gpus(gpus=(gpu(0, "NVIDIA A100-SXM4-80GB", "s---", mig=True),)),
            "skip",
            id="an A100 split by MIG",
        ),
        pytest.param(Gpus(gpus=(Gpu(index=0),)), "skip", id="a GPU without NVLink"),
    ],
)
def test_rows(fact: Gpus, expected: str) -> None:
    assert judge(nvlink_inactive.links_are_up, gpus=fact).status == expected


H100 = "NVIDIA H100 80GB HBM3"
NONE = {"virtualization": "NONE"}


def bare(name: str, *remotes: str, **more: Any) -> Gpus:
    """The same on bare metal, where boards with an SXM socket have all of their links."""
    gpus = machine(name, *remotes).gpus
    return Gpus(gpus=tuple(msgspec.structs.replace(one, **{**NONE, **more}) for one in gpus))


NO_LINKS: dict[str, Any] = {
    "links": None,
    "unread": {"links": Unread(code=3, name="NOT_SUPPORTED")},
}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(bare(H100, "s" * 18, "s" * 18), "ok", id="two H100 SXM with all links"),
        pytest.param(bare(H100, "-" * 18, "-" * 18), "fail", id="two H100 SXM without links"),
        pytest.param(
            bare(H100, "", "", **NO_LINKS), "fail", id="two H100 SXM whose driver knows no links"
        ),
        pytest.param(
            bare(H100, "-" * 18), "ok", id="a single H100 SXM without links"
        ),  # alone: what should it be joined to
        pytest.param(
            bare(H100, "-" * 18, "-" * 18, virtualization="PASSTHROUGH"),
            "ok",
            id="two H100 SXM without links in a virtual machine",
        ),
        pytest.param(
            bare(H100, "-" * 18, "-" * 18, mig_mode=True), "skip", id="two H100 SXM split by MIG"
        ),
        pytest.param(bare(V100, "------", "------"), "fail", id="two V100 SXM without links"),
        pytest.param(
            bare("NVIDIA H100 PCIe", "-" * 18, "-" * 18), "ok", id="two H100 PCIe without bridges"
        ),
        pytest.param(
            bare("NVIDIA H100 NVL", "-" * 18, "-" * 18), "ok", id="two H100 NVL without bridges"
        ),
        pytest.param(
            bare("NVIDIA H200 NVL", "-" * 18, "-" * 18), "ok", id="two H200 NVL without bridges"
        ),
        pytest.param(
            bare("NVIDIA GH200 480GB", "-" * 18, "-" * 18),
            "ok",
            id="two GH200, which have no sockets for NVLink",
        ),
        pytest.param(
            bare("NVIDIA L40S", "", "", **NO_LINKS), "skip", id="two L40S, which have no NVLink"
        ),
    ],
)
def test_sxm_and_pcie_are_told_apart(fact: Gpus, expected: str) -> None:
    assert judge(nvlink_inactive.links_are_up, gpus=fact).status == expected


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        pytest.param((26562, 26562), "ok", id="both links at full speed"),
        pytest.param((26562, 13281), "warn", id="one link at half speed"),
        pytest.param((0, 26562), "ok", id="one link of unknown speed"),
    ],
)
def test_a_link_that_is_slow(speeds: tuple[int, int], expected: str) -> None:
    links = tuple(
        GpuLink(link=n, state=1, remote_type="SWITCH", speed_mbps=speed)
        for n, speed in enumerate(speeds)
    )
    fact = Gpus(gpus=(Gpu(index=0, name="X", links=links),))
    assert judge(nvlink_inactive.links_are_up, gpus=fact).status == expected


def mesh(size: int, links: int, *, broken: bool = False) -> list[str]:
    """Ends of the links on a board that connects each GPU to every other one by `links` links."""
    rows = ["".join(str(b) * links for b in range(size) if b != a) for a in range(size)]
    if broken:  # the link between GPU 0 and GPU 1 is down at both ends
        rows[0], rows[1] = "-" + rows[0][1:], "-" + rows[1][1:]
    return rows


V100_X8 = ["121436", "030257", "013376", "012247", "565607", "467714", "445702", "545613"]
A100 = "NVIDIA A100-SXM4-40GB"
PASSED = {"virtualization": "PASSTHROUGH"}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(bare(V100, *mesh(4, 2)), "ok", id="four V100"),
        pytest.param(bare(V100, *mesh(4, 2, broken=True)), "fail", id="four V100, a link down"),
        pytest.param(bare(A100, *mesh(4, 4)), "ok", id="four A100"),
        pytest.param(bare(A100, *mesh(4, 4, broken=True)), "fail", id="four A100, a link down"),
        pytest.param(bare(H100, *mesh(4, 6, broken=True)), "fail", id="four H100, a link down"),
        pytest.param(bare(V100, *V100_X8, **PASSED), "ok", id="a whole board in a VM"),
        pytest.param(
            bare(V100, "-" + V100_X8[0][1:], *V100_X8[1:], **PASSED),
            "fail",
            id="a whole board in a VM, a link down",
        ),
        pytest.param(
            bare(V100, "1213--", "0302--", "0133--", "0122--", **PASSED), "ok", id="half a board"
        ),
        pytest.param(
            bare(V100, "12----", "02----", "01----"), "ok", id="three GPUs of an unknown board"
        ),
    ],
)
def test_boards_without_switches(fact: Gpus, expected: str) -> None:
    assert judge(nvlink_inactive.links_are_up, gpus=fact).status == expected


def unknown_ends(name: str, *counts: int) -> Gpus:
    """GPUs on bare metal whose driver does not report what the links lead to."""
    return Gpus(
        gpus=tuple(
            Gpu(
                index=index,
                name=name,
                virtualization="NONE",
                links=tuple(GpuLink(link=n, state=int(n < count)) for n in range(18)),
            )
            for index, count in enumerate(counts)
        )
    )


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            unknown_ends("NVIDIA B300 SXM6 AC", 18, 18), "ok", id="two B300 with 18 links"
        ),
        pytest.param(
            unknown_ends("NVIDIA B300 SXM6 AC", 18, 17), "fail", id="one B300 with a link less"
        ),
        pytest.param(
            unknown_ends("NVIDIA H20", 17, 17),
            "fail",
            id="two H20 with one link less than the product has",
        ),
        pytest.param(
            unknown_ends("NVIDIA H800", 8, 8), "ok", id="two H800 with all of their eight links"
        ),
        pytest.param(
            unknown_ends("NVIDIA H800 PCIe", 4, 8),
            "ok",
            id="two H800 PCIe with bridges of different width",
        ),
    ],
)
def test_the_product_decides_where_the_ends_are_unknown(fact: Gpus, expected: str) -> None:
    assert judge(nvlink_inactive.links_are_up, gpus=fact).status == expected


def test_only_links_that_the_product_has_are_listed() -> None:
    """A driver may list 64 links, of which an A100 has 12."""
    switched = [f"{'s' * up}{'-' * (64 - up)}" for up in (12, 11)]
    (finding,) = judge(nvlink_inactive.links_are_up, gpus=bare(A100, *switched)).bad
    assert (finding.evidence["expected"], finding.evidence["down"]) == (12, [11])
    assert finding.hint.endswith("; link 11 is down")


PASTED = """$ nvidia-smi nvlink -s
GPU 2: Tesla V100-SXM2-32GB (UUID: GPU-0c512562-871f-8257-6187-b5ae1b986d52)
{}GPU 3: Tesla V100-SXM2-32GB (UUID: GPU-0c512563-871f-8257-6187-b5ae1b986d53)
{}"""


def links(*down: int) -> str:
    states = ["<inactive>" if link in down else "25.781 GB/s" for link in range(6)]
    return "".join(f"\t Link {link}: {state}\n" for link, state in enumerate(states))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(links(), links(3, 5), "fail", id="one beside a GPU whose links are all up"),
        pytest.param(links(), links(), "skip", id="all links of both"),
        pytest.param(links(3, 5), links(3, 5), "skip", id="a part of a board in a virtual machine"),
    ],
)
def test_a_pasted_part_of_the_gpus(first: str, second: str, expected: str) -> None:
    stated = environment_of(PASTED.format(first, second))
    assert stated is not None
    unit = REGISTRY.find("nvlink-inactive")
    assert unit is not None
    statuses = [finding.status.value for finding in whole(stated, [unit], REGISTRY).findings]
    assert statuses[0] == expected


def alone(name: str, up: int, count: int, **more: Any) -> Gpus:
    links = tuple(GpuLink(link=n, state=int(n < up)) for n in range(count))
    return Gpus(gpus=(Gpu(index=0, name=name, links=links, **more),))


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(alone(A100, 11, 12), "fail", id="an A100 with a link less"),
        pytest.param(alone(A100, 12, 12), "ok", id="an A100 with all links"),
        pytest.param(alone(A100, 8, 12), "ok", id="an A100 with two of its three neighbors"),
        pytest.param(alone(A100, 0, 12), "ok", id="an A100 without its neighbors"),
        pytest.param(alone("NVIDIA H200", 17, 18), "fail", id="an H200 with a link less"),
        pytest.param(alone("NVIDIA H200", 6, 18), "ok", id="an H200 with one of its neighbors"),
        pytest.param(alone("NVIDIA H800", 7, 8), "ok", id="a product that boards of four do not have"),
        pytest.param(alone("Tesla V100-SXM2-32GB", 5, 6), "ok", id="a part of a mesh of V100"),
        pytest.param(alone(V100, 4, 6, virtualization="NONE"), "fail", id="one V100 of a board in a container"),
        pytest.param(alone(V100, 6, 6, virtualization="NONE"), "ok", id="one V100 with all links"),
        pytest.param(alone(V100, 4, 6, virtualization="PASSTHROUGH"), "ok", id="one V100 of half a board in a VM"),
        pytest.param(alone(V100, 0, 6, virtualization="NONE"), "ok", id="one V100 without its neighbors"),
        pytest.param(alone("NVIDIA GeForce RTX 3090", 3, 4), "ok", id="a card"),
    ],
)  # fmt: skip
def test_one_gpu_alone(fact: Gpus, expected: str) -> None:
    """As a container or a paste shows it; nothing is known of its neighbors."""
    assert judge(nvlink_inactive.links_are_up, gpus=fact).status == expected


def test_the_links_of_one_pasted_gpu() -> None:
    rows = "".join(f"\t Link {n}: {'<inactive>' if n == 3 else '25 GB/s'}\n" for n in range(12))
    stated = environment_of(f"GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-0c512562-871f-8257)\n{rows}")
    assert stated is not None
    report = whole(stated, list(REGISTRY), REGISTRY)
    (found,) = [one for one in report.findings if one.condition == "nvlink-inactive"]
    assert (
        found.message == "GPU 1 (NVIDIA A100-SXM4-80GB) has 11 active NVLinks, but 12 are expected"
    )
    assert found.hint.endswith("; link 3 is down")
