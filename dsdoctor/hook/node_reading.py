"""Reads a node for a hook, in the background, while the checks are being imported.

It imports no more than reading needs, because every job waits for it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping

from dsdoctor import probes
from dsdoctor.collect import collect
from dsdoctor.host import LocalHost
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.gpu import Gpus, GpuTopology, Nvml
from dsdoctor.model.facts.job_end import JobEnd, JobRemains
from dsdoctor.model.facts.kernel_log import KernelLog
from dsdoctor.model.facts.machine import Environment, NvidiaKernel, OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot

#: Factor for time limits: a driver with eight GPUs takes longer to start than a tool usually may.
SCALE = 3.0
#: After this a worker gives up and releases its lock.
TOTAL_SECONDS = 60.0
#: What may be read before every job: no environment, no compiler, nothing that imports torch. Nor
#: the kernel log: a fatal Xid remains in it after the GPU was reset, drivers before 570 do not
#: report that reset, and the gate would block jobs for a day.
NODE_FACTS: frozenset[type[Fact]] = frozenset(
    {Environment, Gpus, GpuTopology, NvidiaKernel, Nvml, OsInfo, Resources}
)
#: After a job, also what it left, and the kernel log for the Xids while it ran.
ENDED_FACTS: frozenset[type[Fact]] = frozenset({*NODE_FACTS, JobRemains, KernelLog})
#: The modules of `dsdoctor.probes` that read these facts, and those on which they depend.
NODE_PROBES = ("environment", "machine", "nvidia")
ENDED_PROBES = (*NODE_PROBES, "job_end", "kernel_log")
#: Variables that restrict which GPUs a *job* sees; a verdict on the node must not depend on them.
JOB_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "NVIDIA_VISIBLE_DEVICES")


def node_env(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without the variables of the job for which this hook runs.

    >>> node_env({"SLURM_JOB_ID": "1", "CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin"})
    {'PATH': '/bin'}
    """
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(("SLURM_", "PBS_", "LSB_", "SGE_")) and name not in JOB_VARIABLES
    }


class NodeReading(threading.Thread):
    """Reads a node on a thread that starts at once, independently of the job's environment.

    Attributes:
        ended: the job that has ended, whose remains are read too; None = no job has ended.
    """

    def __init__(self, ended: JobEnd | None = None) -> None:
        super().__init__(name="reading", daemon=True)
        self.ended = ended
        self._snapshot: Snapshot | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Reads the node; `snapshot` raises what this raises."""
        try:
            self._snapshot = self._read()
        except BaseException as error:  # noqa: BLE001  # raised again by `snapshot`
            self._error = error

    def _read(self) -> Snapshot:
        run = RunNeeds(quick=True)
        return collect(
            LocalHost(node_env(os.environ), scale=SCALE),
            [run] if self.ended is None else [run, self.ended],
            probes.builtin(NODE_PROBES if self.ended is None else ENDED_PROBES),
            wanted=set(NODE_FACTS if self.ended is None else ENDED_FACTS),
            timeout=TOTAL_SECONDS,
            progress=report_step,
        )

    def snapshot(self) -> Snapshot:
        """What was read, secrets masked; waits for it.

        Raises:
            BaseException: whatever reading has raised.
        """
        self.join()
        if self._snapshot is None:
            raise self._error or RuntimeError("the node was not read")
        return self._snapshot


def report_step(name: str, ended: bool) -> None:
    """Prints on stdout which probe has begun (`+nvml`) and which has ended (`-nvml`)."""
    # by descriptor: on a full disk, an error of buffered output would end the probe
    with contextlib.suppress(OSError):
        os.write(1, f"{'-' if ended else '+'}{name}\n".encode())
