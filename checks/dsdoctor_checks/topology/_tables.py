"""How many NVLinks each product has, by the exact name that NVML reports.

Each row carries its source, read 2026-11-22; a product without one is not in the table, and only
the two ends of its links are compared. `topo`: what `nvidia-smi topo -m` printed on such a machine
in a public report. `bandwidth`: the published bandwidth of the product, divided by that of one link
of its generation (40, 50, 50, 50 and 100 GB/s for NVLink 1 to 5, both directions together).
"""

from __future__ import annotations

#: GPUs on SXM boards and superchips, where every link is connected: to NVSwitches, or to the other
#: GPUs of the board. GH200 is left out: a node with one of them connects none.
SXM_LINKS = {
    "P100-SXM2-16GB": 4,  # bandwidth, 160 GB/s
    "V100-SXM2-16GB": 6,  # bandwidth, 300 GB/s; alibabacloud.com help 190482
    "V100-SXM2-32GB": 6,  # as above
    "V100-SXM3-32GB": 6,  # topo NV6, NVIDIA/nccl-tests#78
    "A100-SXM4-40GB": 12,  # topo NV12, NVIDIA/nccl#1505
    "A100-SXM4-80GB": 12,  # 12 links of 25 GB/s, NVIDIA/nccl-tests#228
    "A800-SXM4-40GB": 8,  # as the one with 80 GB
    "A800-SXM4-80GB": 8,  # topo NV8
    "H100 80GB HBM3": 18,  # topo NV18, NVIDIA/nccl#1264
    "H800": 8,  # topo NV8
    "H20": 18,  # bandwidth, 900 GB/s
    "H200": 18,  # bandwidth, 900 GB/s
    "B200": 18,  # topo NV18, vllm-project/vllm#31594
    "B300 SXM6 AC": 18,  # bandwidth, 1800 GB/s, of HGX B300
    "GB200": 18,  # topo NV18, sgl-project/sglang#11208
    "GB300": 18,  # bandwidth, 1800 GB/s, of GB300 NVL72
}
#: Sizes of boards without NVSwitches that connect every link to another GPU of the board: NVIDIA
#: DGX-1 and similar, HGX V100, A100, H100 and H200 with 4 GPUs.
DIRECT_BOARDS = {
    "V100-SXM2-16GB": (4, 8),
    "V100-SXM2-32GB": (4, 8),
    "A100-SXM4-40GB": (4,),
    "A100-SXM4-80GB": (4,),
    "H100 80GB HBM3": (4,),  # topo NV6 to each of three, NVIDIA/nccl#1617
    "H200": (4,),
}
#: GPUs in a whole board, of any product: a virtual machine with fewer has only some of the links.
WHOLE_BOARD = 8
#: Cards that bridges connect, and the links of one bridge between two of them.
BRIDGE_LINKS = {
    "GeForce RTX 2080": 1,  # TU104: one link of 50 GB/s
    "GeForce RTX 2080 SUPER": 1,  # TU104: one link of 50 GB/s
    "GeForce RTX 2080 Ti": 2,  # TU102: two links of 50 GB/s
    "TITAN RTX": 2,  # TU102: two links of 50 GB/s
    "Quadro RTX 5000": 1,  # TU104: one link of 50 GB/s
    "Quadro RTX 6000": 2,  # TU102: two links of 50 GB/s
    "Quadro RTX 8000": 2,  # TU102: two links of 50 GB/s
    "GeForce RTX 3090": 4,  # GA102: four links of 28.125 GB/s
    "RTX A4500": 4,  # GA102: four links of 28.125 GB/s
    "RTX A5000": 4,  # GA102: four links of 28.125 GB/s
    "RTX A5500": 4,  # GA102: four links of 28.125 GB/s
    "RTX A6000": 4,  # GA102: four links of 28.125 GB/s
    "A40": 4,  # GA102: four links of 28.125 GB/s
    "A100-PCIE-40GB": 4,  # product brief PB-10137: 600 GB/s over three bridges
    "A100 80GB PCIe": 4,  # as above
}


def product(name: str | None) -> str:
    """A product's name without the brand, which differs between drivers.

    >>> product("NVIDIA H200"), product("Tesla V100-SXM2-32GB"), product("NVIDIA GH200 480GB")
    ('H200', 'V100-SXM2-32GB', 'GH200 480GB')
    """
    return (name or "").removeprefix("NVIDIA ").removeprefix("Tesla ")
