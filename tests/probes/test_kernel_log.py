"""Lines of the kernel's log, as drivers and kernels print them."""

from __future__ import annotations

import pytest

from dsdoctor.api import NvidiaKernel
from dsdoctor.host import HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.probes.kernel_log import fallen_gpus, kernel_log, parse_log
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost
from tests.checks import machines

LOG = """\
<6>[    0.000000] Linux version 6.1.0
<4>[  100.000000] NVRM: GPU at PCI:0000:1b:00: GPU-11111111-2222
<3>[  100.100000] NVRM: Xid (PCI:0000:1b:00): 63, pid=1896, Row Remapper: New row marked
<3>[  200.500000] NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen
<3>[  201.000000] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46
<4>[  300.000000] pcieport 0000:16:01.0: AER: Corrected error received: 0000:1b:00.0
<4>[  300.000001] nvidia 0000:1b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer
<4>[  300.000002] nvidia 0000:1b:00.0: AER: PCIe Bus Error: severity=Corrected, type=Data Link
<3>[  301.000000] nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=TL
<3>[  302.000000] nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=TL
rubbish Xid (PCI:zz): 3
"""


def test_what_is_read() -> None:
    log = parse_log(LOG, 1000.0, "dmesg")
    assert [(x.code, x.bdf, x.age_s, x.switch) for x in log.xids] == [
        (63, "0000:1b:00", 899.9, False),
        (79, "0000:3b:00", 799.5, False),
        (28006, "0000:c1:00", 799.0, True),
    ]
    assert [(e.bdf, e.severity, e.count, e.age_s) for e in log.bus] == [
        ("0000:1b:00", "corrected", 2, 700.0),
        ("0000:3b:00", "fatal", 1, 699.0),
        ("0000:3b:00", "nonfatal", 1, 698.0),
    ]
    assert log.begins_s == 1000.0


def test_the_journal_s_lines() -> None:
    line = "[  200.500000] gpu-17 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=7, Ch 00000008"
    (event,) = parse_log(line, 260.5, "journalctl").xids
    assert (event.code, event.age_s) == (31, 60.0)


def test_without_an_uptime_there_are_no_ages() -> None:
    assert parse_log(LOG, None, "dmesg").xids[0].age_s is None


def test_a_gpu_that_repeats_itself() -> None:
    line = "[1.0] NVRM: Xid (PCI:0000:3b:00): 31, pid=7\n"
    assert len(parse_log(line * 5000, 2.0, "dmesg").xids) == 200


def host(**commands: Result | str) -> FakeHost:
    tools = {f"/bin/{name}": "" for name in commands}
    return FakeHost(
        env={"PATH": "/bin"},
        files={**tools, "/proc/uptime": "1000.0 1.0\n"},
        commands={f"/bin/{name}": answer for name, answer in commands.items()},
    )


CLOSED = Result(argv=("dmesg",), returncode=1, stderr=b"Operation not permitted")
HUNG = Result(argv=("dmesg",), returncode=None, timed_out=True)


def test_dmesg_first() -> None:
    assert len(kernel_log.function(host(dmesg=LOG), machines.kernel()).xids) == 3


def test_the_journal_where_the_ring_buffer_is_closed() -> None:
    fact = kernel_log.function(host(dmesg=CLOSED, journalctl=LOG), machines.kernel())
    assert (fact.source, len(fact.xids)) == ("journalctl", 3)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        pytest.param(host(dmesg=CLOSED), Why.DENIED, id="closed"),
        pytest.param(
            host(dmesg=CLOSED, journalctl=""), Why.DENIED, id="closed, and an empty journal"
        ),
        pytest.param(host(), Why.ABSENT, id="no dmesg"),
        pytest.param(host(dmesg=HUNG), Why.TIMEOUT, id="dmesg hangs"),
    ],
)
def test_why_it_was_not_read(found: FakeHost, why: Why) -> None:
    with pytest.raises(HostError) as caught:
        kernel_log.function(found, machines.kernel())
    assert caught.value.missing.why is why


def test_no_gpu_no_log() -> None:
    found = host(dmesg=LOG)
    with pytest.raises(HostError):
        kernel_log.function(found, NvidiaKernel())
    assert found.ran == []


def test_no_room_for_the_memory_of_a_gpu() -> None:
    line = (
        "<3>[   64.125237] nvidia-uvm: uvm_pmm_gpu.c:3176 devmem_alloc_pagemap[pid:812]"
        " request_free_mem_region() err -34\n"
    )
    assert parse_log(LOG + line, None, "dmesg").hmm_failed
    assert not parse_log(LOG, None, "dmesg").hmm_failed


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            "<3>[   14.1] NVRM: The NVIDIA GPU 0000:B3:00.0\n"
            "<3>[   14.1] NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
            "<3>[   14.1] NVRM: fallen off the bus and is not responding to commands.\n",
            id="three records",
        ),
        pytest.param(
            "<3>[   14.1] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
            "                NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
            "                NVRM: fallen off the bus and is not responding to commands.\n",
            id="one record of three lines",
        ),
    ],
)
def test_a_gpu_that_fell_before_the_driver_took_it_has_no_xid(lines: str) -> None:
    log = parse_log(lines, 100.0, "dmesg")
    assert log.fallen == ("0000:b3:00.0",)
    assert not log.xids


def test_a_gpu_with_another_fault_has_not_fallen() -> None:
    line = (
        "<3>[ 1.0] NVRM: The NVIDIA GPU 0000:1b:00.0 (PCI ID: 10de:2b85)\n"
        "<3>[ 1.0] NVRM: installed in this system requires use of the NVIDIA open kernel modules.\n"
    )
    assert parse_log(line, 100.0, "dmesg").fallen == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "NVRM: GPU 0000:81:00.0: RmInitAdapter failed! (0x25:0x40:1470)",
            ("0000:81:00.0",),
            id="with the address",
        ),
        pytest.param(
            "NVRM: GPU 0000:81:00.0: rm_init_adapter failed, device minor number 0",
            (),
            id="the line that follows it",
        ),
        pytest.param(
            "NVRM: RmInitAdapter failed! (0x25:0xffff:1155)", (), id="of which GPU, it hides"
        ),
    ],
)
def test_a_gpu_that_the_driver_could_not_initialize(line: str, expected: tuple[str, ...]) -> None:
    log = parse_log(f"<4>[ 903.6] {line}\n<4>[ 904.1] {line}\n", 1000.0, "dmesg")
    assert log.not_started == expected
    assert fallen_gpus.function(log).not_started == expected
