"""Commands that start the job on other hosts and wait for it.

For srun, Slurm knows how the job ended. A task or batch script has `SLURMD_NODENAME`; a shell on a
login node does not, not even inside `salloc`. Sources: srun(1) and salloc(1) of Slurm 22.05 and
25.05, read 2026-11, and tried with 22.05.8.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from dsdoctor.model.run_record import RunRecord
from dsdoctor.probes.command_line import parse_command

#: Commands of Slurm that start a job on other hosts and wait for it.
SLURM = frozenset({"srun", "salloc"})
#: Other commands, by their words up to the subcommand.
_OTHERS = (("sbatch",), ("ssh",), ("pdsh",), ("clush",), ("kubectl", "exec"), ("kubectl", "run"),
           ("kubectl", "attach"), ("ray", "job", "submit"))  # fmt: skip
#: Commands that start the job in a container, and their subcommands that do.
_CONTAINERS = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), ("run", "exec")),
    **dict.fromkeys(("apptainer", "singularity"), ("exec", "run")),
    "enroot": ("start", "exec"),
}
#: The states of a failed job in Slurm. srun's own status may still be 0, for example after a node
#: failure (22.05.8).
FAILED_STATES = frozenset(
    {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
     "REVOKED", "TIMEOUT"}
)  # fmt: skip


def starter(command: Sequence[str], env: Mapping[str, str]) -> str:
    """The command that starts the job on other hosts; "" = it runs on this one.

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


def container(command: Sequence[str]) -> str:
    """The command that starts the job in a container; "" = it starts none.

    >>> container(["sudo", "docker", "run", "--gpus", "all", "img", "torchrun", "train.py"])
    'docker run'
    >>> container(["docker", "build", "."])
    ''
    """
    program = parse_command(tuple(command)).program
    verbs = _CONTAINERS.get(posixpath.basename(program), ())
    place = command.index(program) if program in command else 0
    words = [word for word in command[place + 1 :] if not word.startswith("-")][:2]
    verb = next((verb for verb in verbs if verb in words), "")
    return f"{posixpath.basename(program)} {verb}" if verb else ""


def died(record: RunRecord) -> bool:
    """Whether a run died, according to its status or to Slurm's state of the job."""
    if record.status in (0, None):
        return record.elsewhere in SLURM and record.slurm_state in FAILED_STATES
    return True
