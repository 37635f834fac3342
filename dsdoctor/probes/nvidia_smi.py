"""Reads the driver and the GPUs as `nvidia-smi` reports them."""

from __future__ import annotations

import contextlib
import re

import msgspec

from dsdoctor.api import NvidiaSmi, Why, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists
from dsdoctor.probes.command_result import first_words, trouble
from dsdoctor.probes.nvidia import VERSION, WSL_FOLDER


class SmiList(msgspec.Struct, frozen=True, kw_only=True):
    """What `nvidia-smi --query-gpu` listed.

    Attributes:
        gpus: `index, uuid, name` of each.
        driver_version: the version in the first row that has one.
    """

    gpus: tuple[str, ...] = ()
    driver_version: str | None = None


def parse_smi_list(text: str) -> SmiList:
    r"""Parses `--query-gpu=index,uuid,name,driver_version --format=csv,noheader`.

    >>> parse_smi_list("0, GPU-1a, NVIDIA H200, 580.95.05\nrubbish\n")
    SmiList(gpus=('0, GPU-1a, NVIDIA H200',), driver_version='580.95.05')
    """
    gpus: list[str] = []
    driver = None
    for line in text.splitlines():
        found = re.fullmatch(r"(\d+\s*,[^,]+,.+?)\s*,\s*([^,]+)", line.strip())
        if not found:
            continue
        gpus.append(found[1])
        if driver is None and re.fullmatch(VERSION, found[2].strip()):
            driver = found[2].strip()
    return SmiList(gpus=tuple(gpus), driver_version=driver)


def parse_smi_cuda(text: str) -> str | None:
    """The CUDA version in the header of `nvidia-smi`.

    >>> parse_smi_cuda("| NVIDIA-SMI 535.104.05  Driver Version: 535.104.05  CUDA Version: 12.2 |")
    '12.2'
    >>> parse_smi_cuda("| CUDA Version: N/A |")
    """
    found = re.search(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)", text)
    return found[1] if found else None


def parse_smi_no_cuda(text: str) -> str | None:
    """What the header of `nvidia-smi` prints where a CUDA version should be.

    >>> parse_smi_no_cuda("| NVIDIA-SMI 535.54.03  Driver Version: 536.25  CUDA Version: ERR! |")
    'ERR!'
    >>> parse_smi_no_cuda("| CUDA Version: 12.2 |")
    """
    found = re.search(r"CUDA (?:UMD )?Version\s*:\s*(ERR!|N/A|Not Found)", text)
    return found[1] if found else None


@probe
def nvidia_smi(host: Host) -> NvidiaSmi:
    """The driver as `nvidia-smi` reports it; hangs, errors and garbage are recorded, not raised."""
    if host.system == "Darwin":
        raise HostError(Why.UNSUPPORTED, "there is no NVIDIA driver for macOS")
    path = host.which("nvidia-smi")
    if path is None and exists(host, f"{WSL_FOLDER}/nvidia-smi"):
        path = f"{WSL_FOLDER}/nvidia-smi"
    if path is None:
        return NvidiaSmi()
    columns = "--query-gpu=index,uuid,name,driver_version"
    try:
        first = host.run([path, columns, "--format=csv,noheader"], timeout=TOOL_SECONDS)
    except HostError as error:
        return NvidiaSmi(path=path, error=error.missing.detail)
    error_words = trouble(first, TOOL_SECONDS)
    listed = SmiList() if error_words else parse_smi_list(first.text)
    if error_words is None and not listed.gpus:
        said = first_words(first)
        error_words = f"it listed no GPU: {said}" if said else "it listed no GPU"
    cuda = no_cuda = None
    if error_words is None:
        # both calls together stay within the time limit of a tool
        with contextlib.suppress(HostError):
            header = host.run([path], timeout=max(1.0, TOOL_SECONDS - first.seconds))
            if header.ok:
                cuda, no_cuda = parse_smi_cuda(header.text), parse_smi_no_cuda(header.text)
    return NvidiaSmi(
        path=path,
        returncode=first.returncode,
        driver_version=listed.driver_version,
        cuda_version=cuda,
        cuda_missing=no_cuda,
        gpus=listed.gpus,
        error=error_words,
        timed_out=first.timed_out,
    )
