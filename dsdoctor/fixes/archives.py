"""NVIDIA's redistributable archives: where they are, and which make up a toolkit."""

from __future__ import annotations

#: A mirror: `DSDOCTOR_CUDA_ARCHIVES`, with the SHA-256 of its manifest in
#: `DSDOCTOR_CUDA_ARCHIVES_SHA256`.
BASE_URL = "https://developer.download.nvidia.com/compute/cuda/redist"
#: What DeepSpeed's ops need: compiler, runtime, and every header that torch's own headers include.
COMPONENTS = (
    "cuda_nvcc",
    "cuda_crt",
    "libnvvm",
    "cuda_cudart",
    "cuda_cccl",
    "libcublas",
    "libcusparse",
    "libcusolver",
    "libcurand",
    "libnvjitlink",
)
#: Last update of each CUDA release that has a manifest (NVIDIA's CUDA toolkit archive, 2026-11-21).
LAST_UPDATE = {
    "11.4": "11.4.4",
    "11.5": "11.5.2",
    "11.6": "11.6.2",
    "11.7": "11.7.1",
    "11.8": "11.8.0",
    "12.0": "12.0.1",
    "12.1": "12.1.1",
    "12.2": "12.2.2",
    "12.3": "12.3.2",
    "12.4": "12.4.1",
    "12.5": "12.5.1",
    "12.6": "12.6.3",
    "12.8": "12.8.1",
    "12.9": "12.9.1",
    "13.0": "13.0.2",
}


def last_release(cuda: str) -> str:
    """The last update of a CUDA release; of one that is not known, its first.

    >>> last_release("12.4"), last_release("13.9")
    ('12.4.1', '13.9.0')
    """
    return LAST_UPDATE.get(cuda, f"{cuda}.0")


def platform_of(machine: str) -> str:
    """The manifest's name of a platform.

    >>> platform_of("x86_64"), platform_of("aarch64")
    ('linux-x86_64', 'linux-sbsa')
    """
    return {"aarch64": "linux-sbsa", "arm64": "linux-sbsa"}.get(machine, f"linux-{machine}")
