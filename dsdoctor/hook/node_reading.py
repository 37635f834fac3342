"""What a hook reads of a node, in the background: the driver answers while the checks are loaded.

Imports no more than reading takes, since every job waits for it.
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

#: A driver that starts anew with eight GPUs takes longer than a tool may take elsewhere.
SCALE = 3.0
#: After this a worker gives up, so that its lock is free again.
TOTAL_SECONDS = 60.0
#: What may be read before every job: no environment, no compiler, nothing that imports torch. Nor
#: the kernel log: a fatal Xid stays in it after the reset that cured the GPU, drivers before 570 do
#: not report that reset, and the gate would block jobs for a day.
NODE_FACTS: frozenset[type[Fact]] = frozenset(
    {Environment, Gpus, GpuTopology, NvidiaKernel, Nvml, OsInfo, Resources}
)
#: Besides, after a job: what it left. The log is read only for the Xids of its time.
ENDED_FACTS: frozenset[type[Fact]] = frozenset({*NODE_FACTS, JobRemains, KernelLog})
#: The modules of `dsdoctor.probes` that read these, and what these rest on.
NODE_PROBES = ("environment", "machine", "nvidia")
ENDED_PROBES = (*NODE_PROBES, "job_end", "kernel_log")
#: What says which GPUs a *job* sees; a verdict on the node must not depend on it.
JOB_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "NVIDIA_VISIBLE_DEVICES")


def node_env(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without the job in whose prolog this happens to run.

    >>> node_env({"SLURM_JOB_ID": "1", "CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin"})
    {'PATH': '/bin'}
    """
    return {
        name: value
        for name, value in env.items()
        if not name.startswith(("SLURM_", "PBS_", "LSB_", "SGE_")) and name not in JOB_VARIABLES
    }


class NodeReading(threading.Thread):
    """Reads a node, whatever the job's environment says; begins at once.

    Attributes:
        ended: the job that has ended, whose remains are read too; None = none has.
    """

    def __init__(self, ended: JobEnd | None = None) -> None:
        super().__init__(name="reading", daemon=True)
        self.ended = ended
        self._snapshot: Snapshot | None = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Reads; what is raised is kept for `snapshot`."""
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
    """Says on stdout which probe has begun (`+nvml`) and which has ended (`-nvml`)."""
    # straight to the file: where its disk is full, a probe must not end with this line
    with contextlib.suppress(OSError):
        os.write(1, f"{'-' if ended else '+'}{name}\n".encode())
