"""What somebody says of a machine, in the words of a report."""

from __future__ import annotations

from typing import Any

import msgspec

from dsdoctor.api import Fact

GIB = 1 << 30
#: Distribution, its glibc and the gcc of its packages (their archives, read 2026-11-28).
DISTRIBUTIONS = {
    "ubuntu 18.04": ("2.27", "7.5.0"),
    "ubuntu 20.04": ("2.31", "9.4.0"),
    "ubuntu 22.04": ("2.35", "11.4.0"),
    "ubuntu 24.04": ("2.39", "13.3.0"),
    "debian 11": ("2.31", "10.2.1"),
    "debian 12": ("2.36", "12.2.0"),
    "rhel 8.10": ("2.28", "8.5.0"),
    "rhel 9.4": ("2.34", "11.4.1"),
    "arch": ("2.41", "15.1.1"),
}


class Described(msgspec.Struct, kw_only=True, frozen=True):
    """What somebody says of a machine.

    Attributes:
        gpus: number and full names, as `nvidia-smi -L` prints them: `8xNVIDIA H200`, `Tesla T4`; with
            ` + ` between several kinds; empty for none.
        driver: of them; None = one that supports torch's CUDA.
        torch: version as `torch.__version__` prints it; None = not installed.
        cuda: torch's CUDA where its version does not say it and it is not the wheel of PyPI.
        archs: of its kernels, where it is no published wheel.
        cuda_error: number of the error with which CUDA fails to start in torch.
        cuda_message: its text, if another than CUDA's own is known.
        deepspeed: version; None = not installed; empty = one of torch's month.
        python: version of the interpreter.
        nvcc: versions of the toolkits, the one that torch finds first; None = of torch's CUDA.
        gcc: version; None = of the distribution if nvcc and torch accept it, else one that they do.
        distribution: a key of DISTRIBUTIONS.
        machine: of the kernel: `x86_64`, `aarch64`.
        container: as of OsInfo.
        wsl: inside WSL.
        amd: AMD GPUs.
        packages: name to version, beside torch and DeepSpeed.
        variables: of the environment.
        shm: of /dev/shm, bytes; None = half of the memory.
        memory: bytes.
        links: NVLinks to the other GPUs or the switches; None = as many as such a board has.
        each_gpu: fields that all GPUs have.
        gpu: fields of some of them, by index.
        more: facts that replace what was composed.
    """

    gpus: str = ""
    driver: str | None = None
    torch: str | None = "2.6.0+cu124"
    cuda: str | None = None
    archs: tuple[str, ...] | None = None
    cuda_error: int | None = None
    cuda_message: str | None = None
    deepspeed: str | None = ""
    python: str = "3.10.14"
    nvcc: tuple[str, ...] | None = None
    gcc: str | None = None
    distribution: str = "ubuntu 22.04"
    machine: str = "x86_64"
    container: str | None = None
    wsl: bool = False
    amd: int = 0
    packages: dict[str, str] = {}
    variables: dict[str, str] = {}
    shm: int | None = None
    memory: int = 512 * GIB
    links: int | None = None
    each_gpu: dict[str, Any] = {}
    gpu: dict[int, dict[str, Any]] = {}
    more: tuple[Fact, ...] = ()
