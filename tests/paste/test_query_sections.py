"""Parts of `nvidia-smi -q`: sections without the title and the GPU above them, single keys."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import Finding, Status
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from tests.paste import texts
from tests.paste.reading import stated

REGISTRY = packs.load(builtin_only=True)


def troubles(text: str) -> dict[str, Finding]:
    report = judge(stated(text), list(REGISTRY), REGISTRY)
    bad = (Status.FAIL, Status.WARN)
    return {one.condition: one for one in report.findings if one.status in bad}


def section(name: str, *rows: str) -> str:
    """A section as the driver prints it; deeper rows begin with spaces, others say `key: value`."""
    found = [f"    {name}"]
    for row in rows:
        key, colon, value = row.partition(": ")
        deep = f"        {key}"
        found.append(f"{deep:<42}: {value}" if colon else deep)
    return "\n".join(found) + "\n"


REMAPPED = section(
    "Remapped Rows",
    "Correctable Error: 0",
    "Uncorrectable Error: {count}",
    "Pending: {pending}",
    "Remapping Failure Occurred: {failed}",
)
RETIRED = section(
    "Retired Pages", "Single Bit ECC: 0", "Double Bit ECC: 1", "Pending Page Blacklist: {word}"
)
ERRORS = section(
    "ECC Errors",
    "Volatile",
    "    SRAM Correctable: 0",
    "    SRAM Uncorrectable Parity: 0",
    "    SRAM Uncorrectable SEC-DED: 0",
    "    DRAM Correctable: 0",
    "    DRAM Uncorrectable: {count}",
    "Aggregate",
    "    DRAM Correctable: 0",
    "    SRAM Threshold Exceeded: {over}",
    "Channel Repair Pending: {channel}",
    "TPC Repair Pending: No",
)
REASONS = section(
    "Clocks {word} Reasons",
    "Idle: {idle}",
    "Applications Clocks Setting: Not Active",
    "SW Power Cap: Not Active",
    "HW Slowdown: {slow}",
    "    HW Thermal Slowdown: {slow}",
    "    HW Power Brake Slowdown: Not Active",
    "Sync Boost: Not Active",
    "SW Thermal Slowdown: Not Active",
)
POWER = section(
    "GPU Power Readings",
    "Average Power Draw: 69.11 W",
    "Current Power Limit: {limit} W",
    "Requested Power Limit: {limit} W",
    "Default Power Limit: 700.00 W",
    "Min Power Limit: 200.00 W",
)
LINK = section(
    "GPU Link Info",
    "PCIe Generation",
    "    Max: 5",
    "    Current: 5",
    "Link Width",
    "    Max: 16x",
    "    Current: {width}x",
)
MIG = section("MIG Mode", "Current: Disabled", "Pending: {word}")
ECC = section("ECC Mode", "Current: Enabled", "Pending: {word}")
LICENSE = section(
    "vGPU Software Licensed Product",
    "Product Name: NVIDIA Virtual Compute Server",
    "License Status: {word}",
)


@pytest.mark.parametrize(
    ("template", "bad", "good", "condition"),
    [
        pytest.param(
            REMAPPED,
            {"count": "1", "pending": "Yes", "failed": "No"},
            {"count": "1", "pending": "No", "failed": "No"},
            "row-remap-pending",
            id="a pending row",
        ),
        pytest.param(
            REMAPPED,
            {"count": "2", "pending": "No", "failed": "Yes"},
            {"count": "0", "pending": "N/A", "failed": "N/A"},
            "row-remap-failed",
            id="a row that could not be remapped",
        ),
        pytest.param(
            RETIRED, {"word": "Yes"}, {"word": "No"}, "page-retirement-pending", id="a pending page"
        ),
        pytest.param(
            ERRORS,
            {"count": "3", "over": "No", "channel": "No"},
            {"count": "0", "over": "No", "channel": "No"},
            "ecc-uncorrectable",
            id="uncorrectable errors",
        ),
        pytest.param(
            ERRORS,
            {"count": "0", "over": "No", "channel": "Yes"},
            {"count": "0", "over": "N/A", "channel": "N/A"},
            "channel-repair-pending",
            id="a pending repair",
        ),
        pytest.param(
            REASONS,
            {"word": "Event", "idle": "Not Active", "slow": "Active"},
            {"word": "Event", "idle": "Active", "slow": "Not Active"},
            "gpu-throttled",
            id="slowed down",
        ),
        pytest.param(
            REASONS,
            {"word": "Throttle", "idle": "Not Active", "slow": "Active"},
            {"word": "Throttle", "idle": "Active", "slow": "Not Active"},
            "gpu-throttled",
            id="slowed down, older driver",
        ),
        pytest.param(
            POWER, {"limit": "300.00"}, {"limit": "700.00"}, "power-capped", id="a power limit"
        ),
        pytest.param(LINK, {"width": "4"}, {"width": "16"}, "pcie-link-degraded", id="lanes"),
        pytest.param(MIG, {"word": "Enabled"}, {"word": "Disabled"}, "mig-mode-pending", id="MIG"),
        pytest.param(ECC, {"word": "Disabled"}, {"word": "Enabled"}, "ecc-mode-pending", id="ECC"),
        pytest.param(
            section("GPU Reset Status", "Reset Required: {word}"),
            {"word": "Yes"},
            {"word": "No"},
            "gpu-reset-required",
            id="a reset",
        ),
        pytest.param(
            "    GPU Recovery Action                   : {word}\n",
            {"word": "GPU Reset"},
            {"word": "None"},
            "gpu-reset-required",
            id="a reset, newer driver",
        ),
        pytest.param(
            "    Compute Mode                          : {word}\n",
            {"word": "Prohibited"},
            {"word": "Default"},
            "gpu-busy-exclusive-mode",
            id="the compute mode",
        ),
        pytest.param(
            LICENSE,
            {"word": "Unlicensed (Restricted)"},
            {"word": "Licensed (Expiry: 2027-1-14 10:0:0 GMT)"},
            "vgpu-unlicensed",
            id="a license",
        ),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        pytest.param("{part}", id="alone"),
        pytest.param("I ran this:\n\n```\n{part}```\n\nWhy does my job fail?\n", id="in an issue"),
        pytest.param("+-----+\n\n$ nvidia-smi -q\n{part}", id="below a table's end"),
    ],
)
def test_a_section_that_was_cut_out_is_judged(
    template: str, bad: dict[str, str], good: dict[str, str], condition: str, around: str
) -> None:
    found = troubles(around.format(part=template.format(**bad)))
    assert set(found) == {condition}
    assert "None" not in (found[condition].hint or "") + found[condition].message
    assert not troubles(around.format(part=template.format(**good)))


def test_lines_that_have_lost_their_indent() -> None:
    text = REMAPPED.format(count=1, pending="Yes", failed="No")
    flat = "".join(f"{line.strip()}\n" for line in text.splitlines())
    assert set(troubles(flat)) == {"row-remap-pending"}
    assert set(troubles(f"{flat}GPU Recovery Action : None\n")) == {"row-remap-pending"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Remapped Rows\nand pending retirements look fine\n", id="a heading alone"),
        pytest.param("    Pending    : Yes\n    Current    : No\n", id="keys of many sections"),
        pytest.param("Fabric:\n  State: Completed\n", id="a file in YAML"),
        pytest.param("Fabric\n    State : Ready\n    Owner : me\n", id="other values"),
        pytest.param("PCI\n    Slot   : 3\n", id="another key"),
        pytest.param("Clocks\n    Wall   : 12:00\n", id="other clocks"),
        pytest.param("License Status: Unlicensed software is not allowed\n", id="a sentence"),
        pytest.param("it says\n    Remapping Failure Occurred : Yes\n", id="words of a program"),
        pytest.param("Look at `License Status : Unlicensed`.\n", id="words in a sentence"),
        pytest.param("GPU 00000000:1B:00.0\n    is the one that fails\n", id="an address alone"),
        pytest.param("Product Name    : ProLiant DL380\n", id="another product"),
    ],
)
def test_other_texts_are_none(text: str) -> None:
    assert environment_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            section("Temperature", "GPU Current Temp: 31 C", "GPU Shutdown Temp: 92 C"),
            id="temperatures",
        ),
        pytest.param(section("Utilization", "Gpu: 100 %", "Memory: 40 %"), id="utilization"),
        pytest.param(section("Clocks", "Graphics: 1410 MHz", "SM: 1410 MHz"), id="clocks"),
        pytest.param(
            section("Processes", "GPU instance ID: N/A", "Process ID: 4711"), id="processes"
        ),
    ],
)
def test_what_is_of_the_moment_is_recognized_and_says_nothing(text: str) -> None:
    assert not stated(text).facts
    assert not troubles(text)


NAMED = """\
    Product Name                          : {name}
    Product Brand                         : NVIDIA
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : N/A
        Pending                           : N/A
    vGPU Software Licensed Product
        Product Name                      : NVIDIA RTX Virtual Workstation
        License Status                    : Unlicensed{words}
"""


@pytest.mark.parametrize(
    ("name", "words", "conditions"),
    [
        pytest.param("GRID V100D-8C", "", {"vgpu-unlicensed"}, id="a type of vGPU"),
        pytest.param("NVIDIA A100-1-5CME", "", {"vgpu-unlicensed"}, id="one on a MIG device"),
        pytest.param("NVIDIA RTX6000-Ada-24Q", "", {"vgpu-unlicensed"}, id="one for graphics"),
        pytest.param("GRID P40-1B4", "", {"vgpu-unlicensed", "vgpu-without-cuda"}, id="a desktop"),
        pytest.param("NVIDIA A40", " (Restricted)", {"vgpu-unlicensed"}, id="a restriction"),
        pytest.param("NVIDIA A40", " (Unrestricted)", set[str](), id="a whole GPU in a machine"),
        pytest.param("NVIDIA A100-SXM4-40GB", "", set[str](), id="a product that ends alike"),
        pytest.param("Quadro RTX 6000", "", set[str](), id="a card"),
    ],
)
def test_a_name_shows_a_virtual_gpu_where_its_mode_was_cut_out(
    name: str, words: str, conditions: set[str]
) -> None:
    text = NAMED.format(name=name, words=words)
    assert set(troubles(text)) == conditions
    whole = f"==============NVSMI LOG==============\n\nGPU 00000000:02:00.0\n{text}"
    assert set(troubles(whole)) == conditions
    mode = "    GPU Virtualization Mode\n        Virtualization Mode               : {}\n"
    assert "vgpu-unlicensed" not in troubles(whole + mode.format("Pass-Through"))


PENDING = REMAPPED.format(count=1, pending="Yes", failed="No")
FINE = REMAPPED.format(count=0, pending="No", failed="No")


def test_sections_of_one_gpu_and_of_several() -> None:
    one = stated(PENDING + MIG.format(word="Disabled")).facts["gpus"]["gpus"]
    assert len(one) == 1
    assert one[0]["mig_mode"] is False
    two = stated(FINE + PENDING).facts["gpus"]["gpus"]
    assert [gpu["health"]["remapped_rows_pending"] for gpu in two] == [False, True]


LISTED = "".join(
    f"GPU {n}: NVIDIA A100-SXM4-40GB (UUID: GPU-0000000{n}-0000-0000-0000-000000000000)\n"
    for n in range(3)
)


def test_the_gpus_of_a_list_are_those_of_as_many_sections() -> None:
    found = troubles(f"{LISTED}\n{FINE}{FINE}{PENDING}")
    assert found["row-remap-pending"].evidence["gpu"] == 2
    unclear = stated(f"{LISTED}\n{PENDING}")
    assert len(unclear.facts["gpus"]["gpus"]) == 3
    [note] = unclear.noticed
    assert note.startswith("the part of `nvidia-smi -q` from line 6 on does not say which GPU")
    single = LISTED.partition("\n")[0]
    assert troubles(f"{single}\n\n{PENDING}")["row-remap-pending"].evidence["gpu"] == 0


def test_a_line_with_the_address_names_the_gpu() -> None:
    text = f"GPU 00000000:1B:00.0\n{FINE}GPU 00000000:AB:00.0\n{PENDING}"
    found = stated(text).facts["gpus"]["gpus"]
    assert [gpu["pci_bdf"] for gpu in found] == ["0000:1b:00.0", "0000:ab:00.0"]
    assert "0000:ab:00.0" in troubles(text)["row-remap-pending"].message


def test_a_whole_report_is_not_read_again() -> None:
    for text in (texts.SMI_Q, f"{texts.SMI_Q}\n\n\n\nthat is all\n"):
        assert "nvidia-smi -q, in part" not in (stated(text).origin or "")


def test_a_report_without_its_title() -> None:
    text = texts.SMI_Q.partition("\n\n")[2]
    assert stated(text).facts == stated(texts.SMI_Q).facts
