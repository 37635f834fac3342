"""What a text states and no check judges: memory in use, and the state of NPUs and HPUs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from dsdoctor import logs, packs
from dsdoctor.api import Status
from dsdoctor.cli import pasted
from dsdoctor.cli.main import group
from dsdoctor.judge import judge
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.lines import lines_of
from dsdoctor.report import diagnosis as report
from tests.paste.reading import stated

REGISTRY = packs.load(builtin_only=True)
SMI = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
{rows}
"""
ROW = """\
|   {index}  NVIDIA A100-SXM4-80GB          On  | 00000000:0{index}:00.0 Off |                    0 |
| N/A   30C    P0              62W / 400W | {used:>7}MiB / 81920MiB |      0%      Default |
|                                         |                      |             Disabled |
+-----------------------------------------+----------------------+----------------------+"""
NPU = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 90.5        41                0    / 0             |
| 0     0                   | 0000:C1:00.0  | 0           0    / 0          {used:<5}/ 65536         |
+===========================+===============+====================================================+
| 1     Ascend910           | {health:<13} | 90.5        41                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3379 / 65536         |
+===========================+===============+====================================================+
"""
HPU = """\
+-----------------------------------------------------------------------------+
| HL-SMI Version:                              hl-1.17.1-fw-51.5.0            |
| Driver Version:                                     1.17.1-78932ae          |
|-------------------------------+----------------------+----------------------+
| AIP  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |
|===============================+======================+======================|
|   0  HL-225              N/A  | 0000:4d:00.0     N/A |                   0  |
| N/A   31C   N/A    95W / 600W |    768MiB / 98304MiB |     0%           N/A |
|-------------------------------+----------------------+----------------------+
|   1  HL-225              N/A  | 0000:4e:00.0     N/A |                   {errors}  |
| N/A   31C   N/A    95W / 600W |  {used:>5}MiB / 98304MiB |     0%           N/A |
|-------------------------------+----------------------+----------------------+
"""


def smi(*used: int) -> str:
    rows = (ROW.format(index=index, used=one) for index, one in enumerate(used))
    return SMI.format(rows="\n".join(rows))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param(smi(80213, 3), ["GPU 0 (80213 of 81920 MiB, line 10)"], id="one GPU is full"),
        pytest.param(smi(0, 3), [], id="no GPU is"),
        pytest.param(smi(40000, 60000), [], id="half full"),
        pytest.param(smi(*[80213] * 6), ["GPU 3 (80213", "and 2 more"], id="six are"),
        pytest.param(smi(80213)[:-200], ["GPU 0 (80213"], id="the table is cut off"),
        pytest.param(NPU.format(used=65012, health="OK"), ["chip 0 of NPU 0 (65012"], id="NPU"),
        pytest.param(NPU.format(used=3400, health="OK"), [], id="no NPU is"),
        pytest.param(
            NPU.format(used=3400, health="Alarm"),
            ["NPU 1 (Ascend910) as Alarm (line 11)", "-t health -i 1`"],
            id="an NPU is not well",
        ),
        pytest.param(HPU.format(used=768, errors=0), [], id="sound HPUs"),
        pytest.param(HPU.format(used=98000, errors=0), ["HPU 1 (98000 of 98304"], id="HPU"),
        pytest.param(HPU.format(used=768, errors=3), ["shows 3 for HPU 1 (HL-225"], id="ECC"),
    ],
)
def test_what_is_noticed(text: str, parts: list[str]) -> None:
    snapshot = stated(f"```\n{text}```\n")
    said = " ".join(snapshot.noticed)
    assert all(part in said for part in parts), said
    assert bool(said) is bool(parts)
    judged = judge(snapshot, list(REGISTRY), REGISTRY)
    assert not [one for one in judged.findings if one.status in (Status.WARN, Status.FAIL)]
    assert all(note in judged.notes for note in snapshot.noticed)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        pytest.param(NPU.format(used=3400, health="OK"), "npu-smi", id="Ascend"),
        pytest.param(HPU.format(used=768, errors=0), "hl-smi", id="Gaudi"),
    ],
)
def test_devices_of_others_are_no_nvidia_gpus(text: str, tool: str) -> None:
    snapshot = stated(text)
    assert snapshot.origin == f"a paste of {tool}"
    assert snapshot.facts == {}


def test_a_row_without_the_head_of_its_table_is_not_read() -> None:
    assert (
        environment_of("| 0     910B3               | Alarm         | 90.5        41 |\n") is None
    )


UNUSABLE = (
    "UserWarning: CUDA initialization: CUDA driver initialization failed, you might not have a CUDA"
    " gpu.\n  return torch._C._cuda_getDeviceCount() > 0\n\n"
)


@pytest.mark.parametrize(
    ("mode", "cause"),
    [
        pytest.param("Enabled", "mig-without-instance", id="MIG explains it"),
        pytest.param("Disabled", msgspec.UNSET, id="nothing in the environment does"),
    ],
)
def test_a_cause_that_follows_from_the_environment(mode: str, cause: object) -> None:
    text = f"{UNUSABLE}{smi(0).replace('Disabled', mode)}No MIG devices found\n"
    known = logs.signatures_of(REGISTRY)
    diagnosis = pasted.diagnosed("issue", lines_of(text), known)
    assert diagnosis.causes[0].condition == "cuda-init-driver-state"
    found = pasted.with_environment(diagnosis, environment_of(text), REGISTRY)
    assert found.causes[0].follows_from == cause
    shown = report.render(found, of_issue=True)
    assert ("modprobe" in shown) is (mode == "Disabled")
    assert ("follows from mig-without-instance" in shown) is (mode == "Enabled")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        pytest.param(NPU.format(used=3400, health="OK"), False, id="an NPU"),
        pytest.param("torch version .................... 2.6.0+rocm6.2\n", False, id="ROCm"),
        pytest.param("torch version .................... 2.6.0+cu124\n", True, id="CUDA"),
        pytest.param("- PyTorch version: 2.2.0 (NPU)\n- NPU type: Ascend910B3\n", False, id="CANN"),
    ],
)
def test_the_tool_of_another_vendor_is_not_asked_for(
    text: str, asked: bool, tmp_path: Path
) -> None:
    (tmp_path / "issue.md").write_text(text)
    done = CliRunner().invoke(group, ["triage", str(tmp_path / "issue.md")], standalone_mode=False)
    assert done.exception is None
    assert ("`nvidia-smi`" in done.output) is asked
