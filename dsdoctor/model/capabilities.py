"""Compute capability of NVIDIA products, by the exact name that NVML reports.

Sources, read 2026-11-28:

- Turing and later: names and PCI device ids from the list of supported GPUs in NVIDIA's open kernel
  modules 595.45.04 (README.md). The first two digits of an id tell the family of chips, and that
  the capability; `python tools/facts/refresh.py --supported README.md` compares the two.
- Kepler to Volta: NVIDIA's list of legacy CUDA GPUs, with the chip of each from pci.ids 2023.04.11.
- Jetson: NVIDIA's list of CUDA GPUs (developer.nvidia.com/cuda-gpus). CUDA 12 called Thor 10.1.
- vGPU: the boards of the types in NVIDIA's vGPU software documentation.

A product that is not here is not known: no name is matched in part.
"""

from __future__ import annotations

import re

Capability = tuple[int, int]

_NAMES: dict[Capability, str] = {
    (3, 0): """
        GRID K520; GeForce GTX 660; GeForce GTX 660 Ti; GeForce GTX 670; GeForce GTX 680;
        GeForce GTX 690; GeForce GTX 760; GeForce GTX 770; K10.G2.8GB; Quadro K2000;
        Quadro K4000; Quadro K4200; Quadro K5000
    """,
    (3, 5): """
        GeForce GTX 780; GeForce GTX 780 Ti; GeForce GTX TITAN; GeForce GTX TITAN Black;
        GeForce GTX TITAN Z; K20Xm; K20c; K20m; K40c; K40m; K40st; K40t; Quadro K5200;
        Quadro K6000
    """,
    (3, 7): """
        K80
    """,
    (5, 0): """
        GeForce 920MX; GeForce 930MX; GeForce 940M; GeForce 940MX; GeForce GTX 745;
        GeForce GTX 750; GeForce GTX 750 Ti; GeForce GTX 950M; GeForce GTX 960M;
        GeForce MX110; GeForce MX130; M10; Quadro K1200; Quadro K2200; Quadro K620;
        Quadro M1000M; Quadro M1200; Quadro M2000M; Quadro M520; Quadro M600M
    """,
    (5, 2): """
        GeForce GTX 950; GeForce GTX 960; GeForce GTX 965M; GeForce GTX 970;
        GeForce GTX 970M; GeForce GTX 980; GeForce GTX 980 Ti; GeForce GTX 980M;
        GeForce GTX TITAN X; M4; M40; M40 24GB; M6; M60; Quadro M2000; Quadro M2200;
        Quadro M4000; Quadro M5000; Quadro M6000; Quadro M6000 24GB
    """,
    (5, 3): """
        Tegra X1
    """,
    (6, 0): """
        P100-PCIE-12GB; P100-PCIE-16GB; P100-SXM2-16GB; Quadro GP100
    """,
    (6, 1): """
        GeForce GT 1010; GeForce GT 1030; GeForce GTX 1050; GeForce GTX 1050 Ti;
        GeForce GTX 1050 Ti with Max-Q Design; GeForce GTX 1050 with Max-Q Design;
        GeForce GTX 1060; GeForce GTX 1060 3GB; GeForce GTX 1060 5GB; GeForce GTX 1060 6GB;
        GeForce GTX 1060 with Max-Q Design; GeForce GTX 1070; GeForce GTX 1070 Ti;
        GeForce GTX 1070 with Max-Q Design; GeForce GTX 1080; GeForce GTX 1080 Ti;
        GeForce GTX 1080 with Max-Q Design; GeForce MX150; GeForce MX230; GeForce MX250;
        GeForce MX330; GeForce MX350; P102-100; P104-100; P106-090; P106-100; P4; P40; P6;
        Quadro P1000; Quadro P2000; Quadro P2200; Quadro P3000; Quadro P3200; Quadro P400;
        Quadro P4000; Quadro P4200; Quadro P500; Quadro P5000; Quadro P520; Quadro P5200;
        Quadro P600; Quadro P6000; Quadro P620; TITAN X (Pascal); TITAN Xp;
        TITAN Xp COLLECTORS EDITION
    """,
    (6, 2): """
        Tegra X2
    """,
    (7, 0): """
        CMP 100-210; PG500-216; PG503-216; Quadro GV100; TITAN V; TITAN V CEO Edition;
        V100-DGXS-16GB; V100-DGXS-32GB; V100-FHHL-16GB; V100-PCIE-16GB; V100-PCIE-32GB;
        V100-SXM2-16GB; V100-SXM2-16GB-N; V100-SXM2-32GB; V100-SXM2-32GB-LS; V100-SXM3-32GB;
        V100S-PCIE-32GB
    """,
    (7, 2): """
        Xavier
    """,
    (7, 5): """
        CMP 30HX; CMP 40HX; CMP 50HX; GeForce GTX 1630; GeForce GTX 1650;
        GeForce GTX 1650 SUPER; GeForce GTX 1650 Ti; GeForce GTX 1650 Ti with Max-Q Design;
        GeForce GTX 1650 with Max-Q Design; GeForce GTX 1660; GeForce GTX 1660 SUPER;
        GeForce GTX 1660 Ti; GeForce GTX 1660 Ti with Max-Q Design; GeForce MX450;
        GeForce MX550; GeForce RTX 2060; GeForce RTX 2060 SUPER;
        GeForce RTX 2060 with Max-Q Design; GeForce RTX 2070; GeForce RTX 2070 SUPER;
        GeForce RTX 2070 Super; GeForce RTX 2070 Super with Max-Q Design;
        GeForce RTX 2070 with Max-Q Design; GeForce RTX 2080; GeForce RTX 2080 SUPER;
        GeForce RTX 2080 Super; GeForce RTX 2080 Super with Max-Q Design;
        GeForce RTX 2080 Ti; GeForce RTX 2080 with Max-Q Design; Quadro RTX 3000;
        Quadro RTX 3000 with Max-Q Design; Quadro RTX 4000;
        Quadro RTX 4000 with Max-Q Design; Quadro RTX 5000;
        Quadro RTX 5000 with Max-Q Design; Quadro RTX 6000; Quadro RTX 8000; Quadro T1000;
        Quadro T1000 with Max-Q Design; Quadro T2000; Quadro T2000 with Max-Q Design; T1000;
        T1000 8GB; T1200 Laptop GPU; T4; T400; T400 4GB; T400E; T4G; T500; T550 Laptop GPU;
        T600; T600 Laptop GPU; TITAN RTX
    """,
    (8, 0): """
        A100 80GB PCIe; A100-PCIE-40GB; A100-PG509-200; A100-SXM-64GB; A100-SXM4-40GB;
        A100-SXM4-80GB; A30; A800 40GB Active; A800 80GB PCIe; A800 80GB PCIe LC;
        A800-SXM4-40GB; A800-SXM4-80GB; AX800; PG506-232; PG509-210
    """,
    (8, 6): """
        A10; A10G; A10M; A16; A2; A40; CMP 70HX; CMP 90HX; DRIVE-PG199-PROD; GeForce MX570;
        GeForce MX570 A; GeForce RTX 2050; GeForce RTX 3050;
        GeForce RTX 3050 4GB Laptop GPU; GeForce RTX 3050 6GB Laptop GPU;
        GeForce RTX 3050 Laptop GPU; GeForce RTX 3050 OEM; GeForce RTX 3050 Ti Laptop GPU;
        GeForce RTX 3050Ti Laptop GPU; GeForce RTX 3060; GeForce RTX 3060 Laptop GPU;
        GeForce RTX 3060 Ti; GeForce RTX 3070; GeForce RTX 3070 Laptop GPU;
        GeForce RTX 3070 Ti; GeForce RTX 3070 Ti Laptop GPU; GeForce RTX 3080;
        GeForce RTX 3080 Laptop GPU; GeForce RTX 3080 Ti; GeForce RTX 3080 Ti Laptop GPU;
        GeForce RTX 3090; GeForce RTX 3090 Ti; RTX A1000; RTX A1000 6GB Laptop GPU;
        RTX A1000 Embedded GPU; RTX A1000 Laptop GPU; RTX A2000; RTX A2000 12GB;
        RTX A2000 8GB Laptop GPU; RTX A2000 Embedded GPU; RTX A2000 Laptop GPU;
        RTX A3000 12GB Laptop GPU; RTX A3000 Laptop GPU; RTX A400; RTX A4000;
        RTX A4000 Laptop GPU; RTX A4000H; RTX A4500; RTX A4500 Embedded GPU;
        RTX A4500 Laptop GPU; RTX A500 Embedded GPU; RTX A500 Laptop GPU; RTX A5000;
        RTX A5000 Laptop GPU; RTX A5500; RTX A5500 Laptop GPU; RTX A6000
    """,
    (8, 7): """
        Orin
    """,
    (8, 9): """
        GeForce RTX 3050 A Laptop GPU; GeForce RTX 4050 Laptop GPU; GeForce RTX 4060;
        GeForce RTX 4060 Laptop GPU; GeForce RTX 4060 Ti; GeForce RTX 4070;
        GeForce RTX 4070 Laptop GPU; GeForce RTX 4070 SUPER; GeForce RTX 4070 Ti;
        GeForce RTX 4070 Ti SUPER; GeForce RTX 4080; GeForce RTX 4080 Laptop GPU;
        GeForce RTX 4080 SUPER; GeForce RTX 4090; GeForce RTX 4090 D;
        GeForce RTX 4090 Laptop GPU; L2; L20; L4; L40; L40S;
        RTX 1000 Ada Generation Laptop GPU; RTX 2000 Ada Generation;
        RTX 2000 Ada Generation Embedded GPU; RTX 2000 Ada Generation Laptop GPU;
        RTX 2000E Ada Generation; RTX 3000 Ada Generation Laptop GPU;
        RTX 3500 Ada Generation Embedded GPU; RTX 3500 Ada Generation Laptop GPU;
        RTX 4000 Ada Generation; RTX 4000 Ada Generation Laptop GPU;
        RTX 4000 SFF Ada Generation; RTX 4500 Ada Generation;
        RTX 500 Ada Generation Laptop GPU; RTX 5000 Ada Generation;
        RTX 5000 Ada Generation Embedded GPU; RTX 5000 Ada Generation Laptop GPU;
        RTX 5880 Ada Generation; RTX 6000 Ada Generation
    """,
    (9, 0): """
        GH200 120GB; GH200 144G HBM3e; GH200 480GB; H100; H100 80GB HBM2e; H100 80GB HBM3;
        H100 NVL; H100 PCIe; H20; H20 NVL16; H20-3e; H200; H200 NVL; H800; H800 NVL;
        H800 PCIe
    """,
    (10, 0): """
        B200; GB200
    """,
    (10, 3): """
        B300 SXM6 AC; GB300
    """,
    (11, 0): """
        Thor
    """,
    (12, 0): """
        GeForce RTX 5050; GeForce RTX 5050 Laptop GPU; GeForce RTX 5060;
        GeForce RTX 5060 Laptop GPU; GeForce RTX 5060 Ti; GeForce RTX 5070;
        GeForce RTX 5070 Laptop GPU; GeForce RTX 5070 Ti; GeForce RTX 5070 Ti Laptop GPU;
        GeForce RTX 5080; GeForce RTX 5080 Laptop GPU; GeForce RTX 5090; GeForce RTX 5090 D;
        GeForce RTX 5090 D v2; GeForce RTX 5090 Laptop GPU; RTX 6000D;
        RTX PRO 1000 Blackwell Generation Laptop GPU; RTX PRO 2000 Blackwell;
        RTX PRO 2000 Blackwell Embedded GPU; RTX PRO 2000 Blackwell Generation Laptop GPU;
        RTX PRO 3000 Blackwell Generation Laptop GPU; RTX PRO 4000 Blackwell;
        RTX PRO 4000 Blackwell Embedded GPU; RTX PRO 4000 Blackwell Generation Laptop GPU;
        RTX PRO 4000 Blackwell SFF Edition; RTX PRO 4500 Blackwell;
        RTX PRO 500 Blackwell Embedded GPU; RTX PRO 500 Blackwell Generation Laptop GPU;
        RTX PRO 5000 72GB Blackwell; RTX PRO 5000 Blackwell;
        RTX PRO 5000 Blackwell Embedded GPU; RTX PRO 5000 Blackwell Generation Laptop GPU;
        RTX PRO 6000 Blackwell Max-Q Workstation Edition;
        RTX PRO 6000 Blackwell Server Edition; RTX PRO 6000 Blackwell Workstation Edition
    """,
    (12, 1): """
        GB10
    """,
}
BY_NAME: dict[str, Capability] = {
    name: found for found, names in _NAMES.items() for name in " ".join(names.split()).split("; ")
}
#: A vGPU's name has its board, its memory in GB and its series; for a MIG device, its size between.
_VGPU = re.compile(r"(?:GRID )?(?P<board>[A-Z]{1,3}\d{1,4}[A-Z]{0,2})-(?:\d-)?\d{1,3}[ABCQ](?:ME)?")
_BOARDS: dict[Capability, str] = {
    (5, 0): "M10",
    (5, 2): "M6 M60",
    (6, 0): "P100 P100C P100X",
    (6, 1): "P4 P6 P40",
    (7, 0): "V100 V100D V100DX V100L V100S V100X",
    (7, 5): "T4 RTX6000 RTX6000P RTX8000 RTX8000P",
    (8, 0): "A100 A100D A100DX A100X A30 A800 A800D A800DX",
    (8, 6): "A2 A10 A16 A40 RTXA5000 RTXA5500 RTXA6000",
    (8, 9): "L2 L4 L20 L40 L40S L40G",
    (9, 0): "H20 H100 H100L H100XM H100XS H100XL H200 H200X H800 H800L H800XM GH200",
}
_BY_BOARD = {board: found for found, boards in _BOARDS.items() for board in boards.split()}


def plain_name(name: str) -> str:
    """A product's name without the words that differ between drivers.

    >>> plain_name("NVIDIA H200"), plain_name("Tesla V100-SXM2-32GB"), plain_name("Orin (nvgpu)")
    ('H200', 'V100-SXM2-32GB', 'Orin')
    """
    name = name.strip().removeprefix("NVIDIA ").removeprefix("Tesla ")
    return name.removesuffix(" (nvgpu)")


def capability(name: str) -> Capability | None:
    """The compute capability of the product of that name; None if it is not known.

    >>> capability("NVIDIA A100-SXM4-80GB"), capability("GRID A100D-40C"), capability("A100")
    ((8, 0), (8, 0), None)
    """
    plain = plain_name(name)
    found = BY_NAME.get(plain)
    if found is None:
        virtual = _VGPU.fullmatch(plain)
        found = _BY_BOARD.get(virtual["board"]) if virtual else None
    return found
