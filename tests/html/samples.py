"""Pages of whole machines and runs, made as the commands make them."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor import logs, packs, snapshot_changes
from dsdoctor.fleet import diff_page as fleet_diff_page
from dsdoctor.fleet import page as fleet_page
from dsdoctor.fleet.merge import merge
from dsdoctor.fleet.nodes import NodeFinding, NodeReport
from dsdoctor.judge import judge
from dsdoctor.logs.quote import around
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.gpu import (
    Gpu,
    GpuHealth,
    GpuLink,
    GpuPair,
    Gpus,
    GpuTopology,
    PcieLink,
)
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.pci import PciPlace, PciTree
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.report import Report
from dsdoctor.model.run_record import Figures, Notice, PassedSignal, RankEnd, RunRecord
from dsdoctor.model.smoke import (
    PHASES,
    Bandwidth,
    Comparison,
    Knob,
    LaunchUsed,
    Phase,
    Rank,
    SmokeCause,
    SmokeReport,
)
from dsdoctor.model.smoke import Figures as SmokeFigures
from dsdoctor.model.snapshot import Snapshot, differences, of
from dsdoctor.recommend import models
from dsdoctor.recommend.machine import machine_of
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.planning import recommend
from dsdoctor.report.html import check, diagnosis, diff, launch_plan, run, run_diff, smoke
from dsdoctor.run.report import figure_rows
from tests.checks import machines

REGISTRY = packs.load(builtin_only=True)
GIB = 2**30
#: A name that would run, load, reorder or hide something, were it not text.
HOSTILE = (
    "<script>window.hacked=true</script><img src=x onerror=window.hacked=true>"
    "\"'}</style>\u202e\u2066gpu\x1b[2J\x07\u200f\u05d0\u05d1 {{ 7*7 }} &amp;"
)


def _links(down: int = 0) -> tuple[GpuLink, ...]:
    return tuple(GpuLink(link=i, state=0 if i < down else 1) for i in range(18))


def hgx(
    host: str = "gpu-17",
    name: str = "NVIDIA H100 80GB HBM3",
    nodes_per_socket: int = 1,
    down: int = 6,
) -> list[Fact]:
    """Eight GPUs below four switches, eight adapters; GPU 5 has links down, GPU 3 is hot."""
    gpus: list[Gpu] = []
    gpu_places, nics = [], []
    cores = 56 // nodes_per_socket
    for index in range(8):
        numa, root = index // (4 // nodes_per_socket), f"pci0000:{0x17 + 0x20 * (index // 2):02x}"
        port = (f"0000:{0x17 + 0x20 * (index // 2):02x}:01.0",)
        bdf = f"0000:{0x18 + 0x10 * index:02x}:00.0"
        gpus.append(
            machines.gpu(
                "H100",
                index,
                name=name,
                pci_bdf=bdf,
                numa_node=numa,
                cpu_affinity=tuple(range(cores * numa, cores * numa + cores)),
                memory_used_bytes=(60 if index == 2 else 1) * GIB,
                memory_free_bytes=(19 if index == 2 else 78) * GIB,
                links=_links(down if index == 5 else 0),
                health=GpuHealth(temperature_c=88 if index == 3 else 41),
                pcie=PcieLink(width=8 if index == 6 else 16, max_width=16),
            )
        )
        gpu_places.append(
            PciPlace(
                bdf=bdf,
                root=root,
                path=(*port, f"{bdf[:-4]}01.0"),
                numa_node=numa,
                socket=numa // nodes_per_socket,
            )
        )
        nics.append(
            PciPlace(
                bdf=f"{bdf[:-4]}02.0",
                name=f"mlx5_{index}",
                root=root,
                path=(*port, f"{bdf[:-4]}03.0"),
                numa_node=numa,
                socket=numa // nodes_per_socket,
            )
        )
    pairs = tuple(
        GpuPair(a=a, b=b, ancestor="SYSTEM", nvlinks=18 - down if 5 in (a, b) else 18)
        for a in range(8)
        for b in range(a + 1, 8)
    )
    return [
        OsInfo(system="Linux", release="6.1", machine="x86_64", hostname=host),
        machines.kernel("535.104.05"),
        machines.nvml("535.104.05"),
        machines.libcuda("535.104.05"),
        machines.smi(),
        Gpus(gpus=tuple(gpus), count=8),
        GpuTopology(pairs=pairs),
        PciTree(gpus=tuple(gpu_places), nics=tuple(nics)),
        machines.torch("2.11.0+cu130", "13.0"),
        machines.DEEPSPEED,
    ]


def snapshot(**given: Any) -> Snapshot:
    found = of(hgx(**given))
    found.put(RunNeeds(gpus=("0", "1", "2", "3")))
    found.created = "2026-11-22T06:10:00Z"
    return found


def judged(found: Snapshot) -> Report:
    return judge(found, REGISTRY.select(), REGISTRY)


TIMED_OUT = machines.TIMEOUT
LOG = """[2026-01-01 00:00:00,000] [INFO] [runner.py:1:main] deepspeed --num_gpus 4
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/u/train.py", line 40, in <module>
[rank2]:     loss = engine(batch)
[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.10 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use.
[rank0]:[E1122 06:10:00.0 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
[rank1]:[E1122 06:10:00.0 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.
[rank3]: Traceback (most recent call last):
[rank3]:   File "/home/u/train.py", line 40, in <module>
[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.27.5
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


def diagnosed(text: str) -> str:
    """The page on a log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        path.write_text(text)
        found = logs.diagnose_paths([str(path)], logs.signatures_of(REGISTRY))
        return diagnosis.page(found, around([str(path)], diagnosis.places(found)))


def checked(**given: Any) -> str:
    found = snapshot(**given)
    return check.page(judged(found), found)


def planned(name: str = "27B") -> str:
    """The page on a plan for eight GPUs of 80 GiB."""
    made = recommend(
        machine_of(gpu_gib=80, count=8, cc=(9, 0), host_gib=1000, cpus=96),
        models.resolve("27B"),
        PlanOptions(script=name),
    )
    model = msgspec.structs.replace(made.model, name=name)
    return launch_plan.page(msgspec.structs.replace(made, model=model), None)


def proved(word: str = "gpu-17") -> str:
    """The page on a run of eight ranks, one of which died."""
    phases = tuple(
        Phase(
            name=name,
            status="ok" if number < 8 else "fail" if number == 8 else "not-reached",
            seconds=471.3 if number == 8 else 1.5 * number if number < 8 else 0.0,
        )
        for number, name in enumerate(PHASES)
    )
    ranks = tuple(
        Rank(
            rank=rank,
            host=word,
            outcome="died" if rank == 5 else "done",
            last_phase="steps",
            device="NVIDIA H100 80GB HBM3",
            step_ms=210.0 + rank,
            peak_device_bytes=(60 + rank) * GIB,
            peak_host_bytes=4 * GIB,
            error=word if rank == 5 else "",
            log_tail=(word,) if rank == 5 else (),
        )
        for rank in range(8)
    )
    return smoke.page(
        SmokeReport(
            verdict="fail",
            summary=f"rank 5 died in steps: {word}",
            proved=("on all 8 ranks: spawn, import",),
            not_proved=("that a job starts here",),
            phases=phases,
            ranks=ranks,
            figures=SmokeFigures(
                step_ms=214.0,
                tokens_per_s=76_500.0,
                losses=tuple(10.4 - 0.5 * step for step in range(10)),
                step_times_ms=(900.0, *(210.0 + step for step in range(9))),
                bandwidth=(Bandwidth(bytes=GIB, gb_per_s=310.0),),
                reference_gb_per_s=420.0,
                reference="H100 with NVSwitch",
                memory=(
                    Comparison(
                        what="model states", predicted_bytes=50 * GIB,
                        measured_bytes=52 * GIB, ratio=1.04,
                    ),
                ),
            ),
            causes=(SmokeCause(condition="gpu-lost", title=word, message=word, evidence=(word,)),),
            bisect=(Knob(knob="NCCL_P2P_DISABLE", value="1", verdict="pass", seconds=20.0),),
            works_with={"NCCL_P2P_DISABLE": "1"},
            warnings=(word,),
            launch=LaunchUsed(argv=("deepspeed", word), env={"X": word}),
            seconds=92.0,
        )
    )  # fmt: skip


def ran(word: str = "train") -> str:
    """The page on a run with steps, samples of eight GPUs and events."""
    record = RunRecord(
        id=word,
        host="gpu-17",
        command=("python", word),
        started="2026-11-22T06:10:00+00:00",
        seconds=3600,
        status=1,
        notices=[Notice(time=900, key="gpu", text=f"GPU 3 is throttled: {word}")],
        rank_ends=[RankEnd(rank=5, pid=1, time=3590)],
        signals=[PassedSignal(name="SIGTERM", time=3595)],
        changed=[word],
    )
    steps = [
        {"t": 3.6 * n, "step": n, "loss": 2 + 9 / (n + 1), "seconds": 3.6, "tokens_per_second": 9e4}
        for n in range(1000)
    ]
    samples = [
        {"seconds": 2.0 * n}
        | {f"gpu{g}.used": (50 + g) * GIB for g in range(8)}
        | {f"rank{g}.rss": (5 + g) * GIB for g in range(8)}
        for n in range(1800)
    ]
    return run.page(record, steps, samples, "exited with status 1")


def ran_twice(word: str = "train") -> str:
    """The page on two runs: the second one is faster, needs more memory and was stopped early."""

    def kept(name: str, pace: float, memory: int, steps: int) -> run_diff.SavedRun:
        seconds = pace * steps
        record = RunRecord(
            id=name,
            host="gpu-17",
            command=("deepspeed", "train.py", word, "--zero", name),
            started="2026-11-22T06:10:00+00:00",
            seconds=seconds,
            status=0,
            figures=Figures(steps=steps, step_seconds=pace, peak_gpu_bytes={"0": memory * GIB}),
            notices=[Notice(time=seconds / 2, key="gpu", text=f"GPU 3 is throttled: {word}")],
        )
        rows = [
            {"t": pace * n, "step": n, "loss": 2 + 9 / (n + 1), "seconds": pace}
            for n in range(steps)
        ]
        samples = [
            {"seconds": 2.0 * n, "host.used": 90 * GIB}
            | {f"gpu{g}.used": (memory - g) * GIB for g in range(8)}
            for n in range(int(seconds / 2))
        ]
        return run_diff.SavedRun(name=name, record=record, steps=rows, samples=samples)

    before, after = kept(f"zero-2 {word}", 3.6, 50, 1000), kept(f"zero-3 {word}", 2.4, 62, 1100)
    rows = figure_rows(before.record, after.record)
    return run_diff.page(before, after, rows, [f"driver: 535 → {word}"])


def fleet_compared(word: str = "after") -> str:
    """The page on a fleet before and after an upgrade that reached a half of it."""
    verdicts = [
        {"nodes": "gpu[1-4]", "condition": "driver-too-old", "before": "fail", "after": "-"},
        {"nodes": f"gpu[9-12],{word}", "condition": "gpu-lost", "before": "-", "after": "fail"},
    ]
    traits = [
        {"nodes": f"gpu{n}", "trait": f"driver {word}", "before": word, "after": f"580.{n}"}
        for n in range(1, 1102)
    ]
    return fleet_diff_page.page(("before", word), (1200, 1200), verdicts, traits)


def compared(**given: Any) -> str:
    """The page on a machine before and after its driver was upgraded."""
    before, after = snapshot(**given), snapshot(**given)
    for fact in (machines.kernel(), machines.nvml(), machines.libcuda()):
        after.put(fact)
    reports = judged(before), judged(after)
    word = str(given.get("host", "a.json"))
    facts = snapshot_changes.in_words(differences(before, after), before, after)
    facts.append(("environment.variables.X", word, "y" * 900))
    return diff.page((word, "b.json"), reports, facts, snapshot_changes.verdict_changes(*reports))


def fleet(count: int = 512, word: str = "") -> str:
    """The page on many nodes: some are silent, some faulty, some have another driver or kernel."""
    reports = []
    for number in range(count):
        name = f"gpu{number:05d}"
        if number % 97 == 5:
            reports.append(NodeReport(name=name, error=f"no answer within 60 s {word}".strip()))
            continue
        traits = {"GPUs": "8 × NVIDIA H100 80GB HBM3", "driver": "580.95.05", "kernel": "6.1"}
        findings = []
        if number % 41 == 7:
            traits["driver"] = "535.104.05"
        if number % 13 == 3:
            traits[f"variable {word or 'NCCL_DEBUG'}"] = f"{word or 'INFO'} {number % 60}"
        if number % 29 == 11:
            message = f"GPU 3 has fallen off the bus {word}".strip()
            findings.append(
                NodeFinding(status="fail", id="DSD601", condition="gpu-lost", message=message)
            )
        reports.append(
            NodeReport(
                name=name,
                verdict="faulty" if findings else "healthy",
                traits=traits,
                findings=tuple(findings),
                gpus=8,
            )
        )
    return fleet_page.page(merge(reports))


@functools.cache
def all_pages() -> dict[str, str]:
    """Every page, by name; those with names that attack begin with `hostile`."""
    return {
        "check": checked(),
        "hostile-check": checked(host=HOSTILE, name=HOSTILE),
        "recommend": planned(),
        "hostile-recommend": planned(HOSTILE),
        "smoke": proved(),
        "hostile-smoke": proved(HOSTILE),
        "run": ran(),
        "hostile-run": ran(HOSTILE),
        "run-diff": ran_twice(),
        "hostile-run-diff": ran_twice(HOSTILE),
        "fleet-diff": fleet_compared(),
        "hostile-fleet-diff": fleet_compared(HOSTILE),
        "diff": compared(),
        "hostile-diff": compared(host=HOSTILE),
        "fleet": fleet(),
        "hostile-fleet": fleet(60, HOSTILE),
        "diagnose": diagnosed(LOG),
        "hostile-diagnose": diagnosed(
            LOG.replace("loss = engine(batch)", HOSTILE).replace(
                "[rank2]: torch", f"{HOSTILE} torch"
            )
        ),
    }
