"""Blocks of `nvidia-smi -q`: which GPU one describes, and one without the title above it."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import Finding, Status
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from tests.paste.reading import stated

REGISTRY = packs.load(builtin_only=True)
TITLE = "==============NVSMI LOG==============\n\nDriver Version   : 550.54.15\n\n"
BLOCK = """\
GPU 00000000:{bus}:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Minor Number                          : {minor}
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 1
        Pending                           : {pending}
        Remapping Failure Occurred        : No
"""
BRAKE = """\
GPU 00000000:AB:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Clocks Event Reasons
        Idle                              : {idle}
        SW Power Cap                      : Not Active
        HW Slowdown                       : {slow}
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : {slow}
"""
CORRECTED = """\
GPU 00000000:19:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    ECC Errors
        Volatile
            SRAM Correctable              : 2
            SRAM Uncorrectable Parity     : 0
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Correctable              : {volatile}
            DRAM Uncorrectable            : 0
        Aggregate
            SRAM Correctable              : 2
            DRAM Correctable              : {aggregate}
            DRAM Uncorrectable            : 0
"""
FABRIC = """\
GPU 00000008:06:00.0
    Product Name                          : {name}
    Fabric
        State                             : Completed
        Status                            : {status}
        CliqueId                          : 0
"""
TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   5  NVIDIA A100-SXM...  On   | 00000000:B7:00.0 Off |                    0 |
| N/A   29C    P0    62W / 400W |      0MiB / 81920MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+
"""


def block(bus: str, minor: int, pending: str = "No") -> str:
    return BLOCK.format(bus=bus, minor=minor, pending=pending)


def attached(count: int) -> str:
    return f"{TITLE}Attached GPUs    : {count}\n"


def found(text: str, condition: str) -> list[Finding]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    return [
        finding
        for finding in report.findings
        if finding.condition == condition and finding.status in (Status.WARN, Status.FAIL)
    ]


PENDING = "row-remap-pending"


@pytest.mark.parametrize(
    ("text", "name", "selector"),
    [
        pytest.param(
            attached(2) + block("07", 0) + block("B7", 1, "Yes"),
            "GPU 1 (NVIDIA A100-SXM4-80GB)",
            "-i 1`",
            id="the list is complete",
        ),
        pytest.param(
            attached(8) + block("07", 0) + block("B7", 1, "Yes"),
            "GPU 1 (NVIDIA A100-SXM4-80GB)",
            "-i 1`",
            id="its end was cut off",
        ),
        pytest.param(
            attached(8) + block("B7", 5, "Yes"),
            "the GPU at 0000:b7:00.0 (NVIDIA A100-SXM4-80GB)",
            "-i 0000:b7:00.0`",
            id="of one GPU",
        ),
        pytest.param(
            block("B7", 5, "Yes"),
            "the GPU at 0000:b7:00.0 (NVIDIA A100-SXM4-80GB)",
            "-i 0000:b7:00.0`",
            id="without the title",
        ),
        pytest.param(
            TABLE + attached(8) + block("B7", 5, "Yes"),
            "GPU 5 (NVIDIA A100-SXM4-80GB)",
            "-i 5`",
            id="a table tells the index",
        ),
    ],
)
def test_the_gpu_of_a_block_is_the_right_one(text: str, name: str, selector: str) -> None:
    (finding,) = found(text, PENDING)
    assert finding.message.startswith(f"{name} has a memory row pending")
    assert selector in finding.hint


def test_two_blocks_without_a_title_are_two_gpus() -> None:
    text = f"```\n{block('07', 3, 'Yes')}```\nand\n```\n{block('B7', 5, 'Yes')}```\n"
    assert len(found(text, PENDING)) == 2
    assert stated(text).contradictions == ()


@pytest.mark.parametrize(
    ("idle", "slow", "words"),
    [
        pytest.param("Not Active", "Active", ["the power supply"], id="the power supply brakes"),
        pytest.param("Active", "Not Active", [], id="idle"),
    ],
)
def test_a_cut_out_block_is_judged(idle: str, slow: str, words: list[str]) -> None:
    findings = found(f"> {BRAKE.format(idle=idle, slow=slow)}", "gpu-throttled")
    assert [word for word in words if word in " ".join(one.message for one in findings)] == words
    assert len(findings) == len(words)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("GPU 00000000:AB:00.0\nis slow\n", id="a sentence"),
        pytest.param("GPU 00000000:AB:00.0\nProduct Name: x\n", id="not indented"),
    ],
)
def test_an_address_alone_is_no_block(text: str) -> None:
    assert environment_of(text) is None


@pytest.mark.parametrize(
    ("name", "status", "where"),
    [
        pytest.param("NVIDIA GB200", "Insufficient Resources", "switch tray", id="of a rack"),
        pytest.param("NVIDIA B200", "Insufficient Resources", "systemctl start", id="of a board"),
        pytest.param("NVIDIA GB200", "Success", "", id="joined"),
    ],
)
def test_a_fabric_that_a_gpu_did_not_join(name: str, status: str, where: str) -> None:
    findings = found(FABRIC.format(name=name, status=status), "fabric-manager-not-running")
    assert [where in one.hint for one in findings] == ([True] if where else [])
    assert all(f"the GPU at 0008:06:00.0 ({name})" in one.message for one in findings)


@pytest.mark.parametrize(
    ("volatile", "aggregate", "words"),
    [
        pytest.param("0", "1200", [], id="a thousand over the life of the card"),
        pytest.param("N/A", "N/A", [], id="counters that the card does not have"),
        pytest.param(
            "20000001", "0", ["has corrected 20000003 memory errors"], id="since the boot"
        ),
        pytest.param("0", "77000000", ["has corrected 77000000 DRAM errors"], id="before the boot"),
    ],
)
def test_corrected_errors_of_a_block(volatile: str, aggregate: str, words: list[str]) -> None:
    text = attached(1) + CORRECTED.format(volatile=volatile, aggregate=aggregate)
    messages = [one.message for one in found(text, "ecc-corrected-errors")]
    assert [word for word in words if word in messages[0]] == words if words else not messages
    assert not found(text, "ecc-uncorrectable")
