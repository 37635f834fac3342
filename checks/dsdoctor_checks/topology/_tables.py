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
#: Products that are joined by bridges, each of this many links.
BRIDGE_LINKS = {
    "RTX 3090": 4,
    "RTX A6000": 4,
    "A40": 4,
    "A100-PCIE": 4,
    "A100 80GB PCIe": 4,
    "H100 PCIe": 4,
}
