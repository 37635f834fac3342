"""Commands that start the job on other hosts and wait for it; of srun, Slurm knows how it ended.

A task or batch script has `SLURMD_NODENAME`; a shell on a log-in node does not, not even inside
`salloc`. Sources: srun(1) and salloc(1) of Slurm 22.05 and 25.05; read 2026-11, and seen with
22.05.8.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from dsdoctor.model.run_record import RunRecord
from dsdoctor.probes.command_line import parse_command

#: Commands of Slurm that start a job on other hosts and wait for it.
SLURM = frozenset({"srun", "salloc"})
#: Others, by their words up to the one that says so.
_OTHERS = (("sbatch",), ("ssh",), ("pdsh",), ("clush",), ("kubectl", "exec"), ("kubectl", "run"),
           ("kubectl", "attach"), ("ray", "job", "submit"))  # fmt: skip
#: How Slurm says that a job has failed. srun's own status may be 0 even so, as it is where a node
#: has failed (22.05.8).
FAILED_STATES = frozenset(
    {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
     "REVOKED", "TIMEOUT"}
)  # fmt: skip


def starter(command: Sequence[str], env: Mapping[str, str]) -> str:
    """The command that runs this one on other hosts; "" = it runs on this one.

    >>> starter(["srun", "-N2", "python", "train.py"], {})
    'srun'
    >>> starter(["srun", "-N2", "python", "train.py"], {"SLURMD_NODENAME": "n1"})
    ''
    >>> starter(["ssh", "-t", "gpu1", "torchrun", "train.py"], {})
    'ssh'
    >>> starter(["kubectl", "-n", "ml", "exec", "trainer-0", "--", "torchrun", "train.py"], {})
    'kubectl exec'
    """
    program = parse_command(tuple(command)).program
    name = posixpath.basename(program)
    if name in SLURM:
        return "" if env.get("SLURMD_NODENAME") else name
    place = command.index(program) if program in command else 0
    words = [word for word in command[place + 1 :] if not word.startswith("-")]
    for first, *rest in _OTHERS:
        if first == name and rest == [word for word in words if word in rest][: len(rest)]:
            return " ".join((first, *rest))
    return ""


def died(record: RunRecord) -> bool:
    """Whether a run that has ended died: by its status, or by what Slurm says of its job."""
    if record.status in (0, None):
        return record.elsewhere in SLURM and record.slurm_state in FAILED_STATES
    return True
