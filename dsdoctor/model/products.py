"""NVIDIA products: compute capability and memory, by the exact name that NVML reports.

Sources, read 2026-11-22: compute capability from NVIDIA's list of CUDA GPUs
(developer.nvidia.com/cuda-gpus and its page of legacy GPUs); memory as `nvidia-smi` prints it in
public reports (MiB; drivers before 510 count what they reserve as usable, which differs by up to
2 %). A product that is not here is not known: no name is matched in part.
"""

from __future__ import annotations

from typing import NamedTuple


class Product(NamedTuple):
    """One product.

    Attributes:
        major: compute capability, major.
        minor: compute capability, minor.
        mib: memory, MiB.
    """

    major: int
    minor: int
    mib: int


PRODUCTS = {
    "P100-PCIE-16GB": Product(6, 0, 16280),
    "P100-SXM2-16GB": Product(6, 0, 16280),
    "P40": Product(6, 1, 24576),
    "P4": Product(6, 1, 7611),
    "K40c": Product(3, 5, 11441),
    "K40m": Product(3, 5, 11441),
    "K80": Product(3, 7, 11441),
    "M40": Product(5, 2, 11448),
    "M60": Product(5, 2, 7618),
    "GeForce GTX 980 Ti": Product(5, 2, 6083),
    "GeForce GTX 1070": Product(6, 1, 8192),
    "GeForce GTX 1080": Product(6, 1, 8192),
    "GeForce GTX 1080 Ti": Product(6, 1, 11264),
    "TITAN Xp": Product(6, 1, 12288),
    "TITAN V": Product(7, 0, 12288),
    "TITAN RTX": Product(7, 5, 24576),
    "V100-PCIE-16GB": Product(7, 0, 16384),
    "V100-PCIE-32GB": Product(7, 0, 32768),
    "V100S-PCIE-32GB": Product(7, 0, 32768),
    "V100-SXM2-16GB": Product(7, 0, 16384),
    "V100-SXM2-32GB": Product(7, 0, 32768),
    "V100-SXM3-32GB": Product(7, 0, 32768),
    "T4": Product(7, 5, 15360),
    "GeForce GTX 1650": Product(7, 5, 4096),
    "GeForce RTX 2060": Product(7, 5, 6144),
    "GeForce RTX 2070": Product(7, 5, 8192),
    "GeForce RTX 2080": Product(7, 5, 8192),
    "GeForce RTX 2080 SUPER": Product(7, 5, 8192),
    "GeForce RTX 2080 Ti": Product(7, 5, 11264),
    "Quadro RTX 5000": Product(7, 5, 16384),
    "Quadro RTX 6000": Product(7, 5, 24576),
    "Quadro RTX 8000": Product(7, 5, 49152),
    "GeForce RTX 3060": Product(8, 6, 12288),
    "GeForce RTX 3060 Laptop GPU": Product(8, 6, 6144),
    "GeForce RTX 3070": Product(8, 6, 8192),
    "GeForce RTX 3080": Product(8, 6, 10240),
    "GeForce RTX 3080 Ti": Product(8, 6, 12288),
    "GeForce RTX 3090": Product(8, 6, 24576),
    "GeForce RTX 3090 Ti": Product(8, 6, 24564),
    "RTX A4000": Product(8, 6, 16376),
    "RTX A4500": Product(8, 6, 20470),
    "RTX A5000": Product(8, 6, 24564),
    "RTX A5500": Product(8, 6, 24564),
    "RTX A6000": Product(8, 6, 49140),
    "A2": Product(8, 6, 15356),
    "A10": Product(8, 6, 23028),
    "A10G": Product(8, 6, 23028),
    "A16": Product(8, 6, 15356),
    "A30": Product(8, 0, 24576),
    "A40": Product(8, 6, 46068),
    "A100-PCIE-40GB": Product(8, 0, 40960),
    "A100 80GB PCIe": Product(8, 0, 81920),
    "A100-SXM4-40GB": Product(8, 0, 40960),
    "A100-SXM4-80GB": Product(8, 0, 81920),
    "A100-SXM-64GB": Product(8, 0, 65536),
    "A800-SXM4-80GB": Product(8, 0, 81920),
    "A800 80GB PCIe": Product(8, 0, 81920),
    "GeForce RTX 4060 Ti": Product(8, 9, 16380),
    "GeForce RTX 4070": Product(8, 9, 12282),
    "GeForce RTX 4070 Ti": Product(8, 9, 12282),
    "GeForce RTX 4080": Product(8, 9, 16376),
    "GeForce RTX 4090": Product(8, 9, 24564),
    "GeForce RTX 4090 D": Product(8, 9, 24564),
    "RTX 4000 Ada Generation": Product(8, 9, 20475),
    "RTX 5000 Ada Generation": Product(8, 9, 32760),
    "RTX 6000 Ada Generation": Product(8, 9, 49140),
    "L4": Product(8, 9, 23034),
    "L20": Product(8, 9, 46068),
    "L40": Product(8, 9, 46068),
    "L40S": Product(8, 9, 46068),
    "H20": Product(9, 0, 97871),
    "H20-3e": Product(9, 0, 143771),
    "H800": Product(9, 0, 81559),
    "H100 PCIe": Product(9, 0, 81559),
    "H100 NVL": Product(9, 0, 95830),
    "H100 80GB HBM3": Product(9, 0, 81559),
    "H200": Product(9, 0, 143771),
    "H200 NVL": Product(9, 0, 143771),
    "GH200 480GB": Product(9, 0, 97871),
    "B200": Product(10, 0, 183359),
    "GB200": Product(10, 0, 189471),
    "B300 SXM6 AC": Product(10, 3, 275040),
    "GB300": Product(10, 3, 284208),
    "GeForce RTX 5060 Ti": Product(12, 0, 16311),
    "GeForce RTX 5070": Product(12, 0, 12227),
    "GeForce RTX 5070 Ti": Product(12, 0, 16303),
    "GeForce RTX 5080": Product(12, 0, 16303),
    "GeForce RTX 5090": Product(12, 0, 32607),
    "GeForce RTX 5090 D": Product(12, 0, 32607),
    "RTX PRO 6000 Blackwell Server Edition": Product(12, 0, 97887),
    "RTX PRO 6000 Blackwell Workstation Edition": Product(12, 0, 97887),
}


def product(name: str) -> Product | None:
    """The product of that name; None where it is not known.

    >>> product("NVIDIA A100-SXM4-80GB"), product("Tesla T4").mib, product("A100")
    (Product(major=8, minor=0, mib=81920), 15360, None)
    """
    return PRODUCTS.get(name.strip().removeprefix("NVIDIA ").removeprefix("Tesla "))
