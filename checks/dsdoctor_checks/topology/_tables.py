"""NVLinks that a product has.

Sources: data sheets as collected in stas00/ml-engineering network/README.md; NVIDIA's
Health-Validation catalogue (18 links on H100); read 2026-11-21.
"""

from __future__ import annotations

#: Part of the product's name to the links of a GPU on a board with NVSwitches.
SWITCHED_LINKS = {
    "A100-SXM": 12,
    "H100 80GB HBM3": 18,
    "H200": 18,
    "B200": 18,
    "GB200": 18,
}
#: Part of the name of a product on an SXM board to its links, switched or direct: there, links that
#: are all down are a fault, while on a PCIe card they are a bridge that nobody bought.
SXM_LINKS = {
    "P100-SXM2": 4,
    "V100-SXM2": 6,
    "V100-SXM3": 6,
    **SWITCHED_LINKS,
}
#: Products whose name holds that of an SXM board.
NOT_SXM = (" NVL", "PCIe", "PCIE")
#: Products that are joined by bridges, each of this many links.
BRIDGE_LINKS = {
    "RTX 3090": 4,
    "RTX A6000": 4,
    "A40": 4,
    "A100-PCIE": 4,
    "A100 80GB PCIe": 4,
    "H100 PCIe": 4,
    "H100 NVL": 4,
    "RTX A5000": 4,
    "RTX A5500": 4,
    "A30": 4,
}
