"""`nvidia-smi -q -x`: the report of `-q` as XML, one element per line.

Source: nvsmi_device_v9.dtd to v12.dtd, which the driver installs; read 2026-11-23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste.lines import Line
from dsdoctor.paste.nvidia_smi_query import QueryReport
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_ROOT = re.compile(r"\s*<nvidia_smi_log>\s*$")
_GPU = re.compile(r'\s*<gpu id="(?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)">\s*$')
_LEAF = re.compile(r"\s*<(?P<tag>\w+)>(?P<value>[^<>]*)</(?P=tag)>\s*$")
_OPEN = re.compile(r"\s*<(?P<tag>\w+)(?: [^<>]*)?>\s*$")
_CLOSE = re.compile(r"\s*</(?P<tag>\w+)>\s*$")
#: Deepest nesting of elements that is followed; those of `_KEYS` have 4 levels.
_DEEPEST = 16
#: Maps elements to the names of `nvidia-smi -q`.
_KEYS = {
    "driver_version": "Driver Version",
    "cuda_version": "CUDA Version",
    "attached_gpus": "Attached GPUs",
    "product_name": "Product Name",
    "uuid": "GPU UUID",
    "minor_number": "Minor Number",
    "vbios_version": "VBIOS Version",
    "gpu_recovery_action": "GPU Recovery Action",
    "gsp_firmware_version": "GSP Firmware Version",
    "persistence_mode": "Persistence Mode",
    "compute_mode": "Compute Mode",
    "mig_mode/current_mig": "MIG Mode/Current",
    "mig_mode/pending_mig": "MIG Mode/Pending",
    "ecc_mode/current_ecc": "ECC Mode/Current",
    "ecc_mode/pending_ecc": "ECC Mode/Pending",
    "fb_memory_usage/total": "FB Memory Usage/Total",
    "ecc_errors/volatile/sram_uncorrectable": "ECC Errors/Volatile/SRAM Uncorrectable",
    "ecc_errors/volatile/sram_uncorrectable_parity":
        "ECC Errors/Volatile/SRAM Uncorrectable Parity",
    "ecc_errors/volatile/sram_uncorrectable_secded":
        "ECC Errors/Volatile/SRAM Uncorrectable SEC-DED",
    "ecc_errors/volatile/dram_uncorrectable": "ECC Errors/Volatile/DRAM Uncorrectable",
    "ecc_errors/volatile/double_bit/total": "ECC Errors/Volatile/Double Bit/Total",
    "remapped_rows/remapped_row_corr": "Remapped Rows/Correctable Error",
    "remapped_rows/remapped_row_unc": "Remapped Rows/Uncorrectable Error",
    "remapped_rows/remapped_row_pending": "Remapped Rows/Pending",
    "remapped_rows/remapped_row_failure": "Remapped Rows/Remapping Failure Occurred",
    "retired_pages/multiple_single_bit_retirement/retired_count": "Retired Pages/Single Bit ECC",
    "retired_pages/double_bit_retirement/retired_count": "Retired Pages/Double Bit ECC",
    "retired_pages/pending_blacklist": "Retired Pages/Pending",
    "retired_pages/pending_retirement": "Retired Pages/Pending",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "GPU Link Info/Link Width/Max",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "GPU Link Info/Link Width/Current",
}  # fmt: skip


def _read(lines: Sequence[Line], into: Statements) -> None:
    report: QueryReport | None = None
    above: list[str] = []
    for line in lines:
        if _ROOT.match(line.text):
            into.recognized()
            report, above = QueryReport(into), []
        elif report is None:
            continue
        elif gpu := _GPU.match(line.text):
            above = []
            report.begin(gpu["bus"], line)
        elif leaf := _LEAF.match(line.text):
            key = _KEYS.get("/".join([*above, leaf["tag"]]))
            if key is not None:
                report.value(key, leaf["value"].strip(), line)
        elif close := _CLOSE.match(line.text):
            if close["tag"] == "nvidia_smi_log":
                report.finish()
                report = None
            above = above[:-1] if close["tag"] in above else above
        elif (opened := _OPEN.match(line.text)) and len(above) < _DEEPEST:
            above.append(opened["tag"])
    if report is not None:
        report.finish()


READER = Reader("nvidia-smi -q -x", _read)
