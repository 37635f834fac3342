"""How many NVLinks each product has, by the exact name that NVML reports.

Written 2026-11-22 from the NVLink bandwidth that NVIDIA publishes for each product, divided by that
of one link of its generation (40, 50, 50, 50 and 100 GB/s for NVLink 1 to 5, both directions
together); the rows were not compared with the data sheets one by one. Besides: `nvidia-smi topo -m`
in public reports (A800 and H800: NV8); NVIDIA's Health-Validation catalog (18
links on H100); stas00/ml-engineering network/README.md.
"""

from __future__ import annotations

#: GPUs on SXM boards and superchips, where every link is connected: to NVSwitches, or to the other
#: GPUs of the board. GH200 is left out: a node with one of them connects none.
SXM_LINKS = {
    "P100-SXM2-16GB": 4,
    "V100-SXM2-16GB": 6,
    "V100-SXM2-32GB": 6,
    "V100-SXM3-32GB": 6,
    "A100-SXM4-40GB": 12,
    "A100-SXM4-80GB": 12,
    "A100-SXM-64GB": 12,
    "A800-SXM4-40GB": 8,
    "A800-SXM4-80GB": 8,
    "H100 80GB HBM3": 18,
    "H800": 8,
    "H20": 18,
    "H20-3e": 18,
    "H200": 18,
    "B200": 18,
    "B300 SXM6 AC": 18,
    "GB200": 18,
    "GB300": 18,
}
#: Sizes of boards without NVSwitches that connect every link to another GPU of the board: NVIDIA
#: DGX-1 and similar, HGX V100, A100, H100 and H200 with 4 GPUs.
DIRECT_BOARDS = {
    "V100-SXM2-16GB": (4, 8),
    "V100-SXM2-32GB": (4, 8),
    "A100-SXM4-40GB": (4,),
    "A100-SXM4-80GB": (4,),
    "A100-SXM-64GB": (4,),
    "H100 80GB HBM3": (4,),
    "H200": (4,),
}
#: GPUs in a whole board, of any product: a virtual machine with fewer has only some of the links.
WHOLE_BOARD = 8
#: Cards that bridges connect, and the links of one bridge between two of them.
BRIDGE_LINKS = {
    "GeForce RTX 2080": 1,
    "GeForce RTX 2080 SUPER": 1,
    "GeForce RTX 2080 Ti": 2,
    "TITAN RTX": 2,
    "Quadro RTX 5000": 1,
    "Quadro RTX 6000": 2,
    "Quadro RTX 8000": 2,
    "GeForce RTX 3090": 4,
    "GeForce RTX 3090 Ti": 4,
    "RTX A4500": 4,
    "RTX A5000": 4,
    "RTX A5500": 4,
    "RTX A6000": 4,
    "A30": 4,
    "A40": 4,
    "A100-PCIE-40GB": 4,
    "A100 80GB PCIe": 4,
    "H100 PCIe": 4,
    "H100 NVL": 4,
    "H200 NVL": 6,
}


def product(name: str | None) -> str:
    """A product's name without the brand, which differs between drivers.

    >>> product("NVIDIA H200"), product("Tesla V100-SXM2-32GB"), product("NVIDIA GH200 480GB")
    ('H200', 'V100-SXM2-32GB', 'GH200 480GB')
    """
    return (name or "").removeprefix("NVIDIA ").removeprefix("Tesla ")
