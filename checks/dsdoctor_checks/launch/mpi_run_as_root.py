"""mpirun refuses to start as root.

## Why it matters
Open MPI and PRRTE refuse to run as root, because a mistake made as root can damage the system. In a
container, where root is the usual user, every run stops there.

## What to do
In a container, pass `--allow-run-as-root`, or set `OMPI_ALLOW_RUN_AS_ROOT=1` and `OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1` (for
`prterun`: `PRTE_ALLOW_RUN_AS_ROOT=1` and `PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1`). On a machine that others use, start it as
an ordinary user.

## References
- Open MPI 1.8-4.1 orte/tools/orterun/orterun.c; PRRTE 1-4 src/mca/schizo/base
- https://docs.open-mpi.org/en/main/man-openmpi/man1/mpirun.1.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("mpi-run-as-root", id="DSD1263", scope=Scope.JOB, since="0.1")

HINT = "in a container, pass `--allow-run-as-root` to `mpirun`; elsewhere, start it as an ordinary user"

SIGNATURES = (
    Signature(
        pattern=r"\b(?P<tool>\w{1,40}) has detected an attempt to run as root\.",
        source="openmpi 1.8-4.1 orte/tools/orterun/orterun.c; prrte 1-4 src/mca/schizo/base/schizo_base_stubs.c",
        message="`{tool}` refuses to start as root",
        examples=(
            "mpirun has detected an attempt to run as root.",
            "prterun has detected an attempt to run as root.",
        ),
        not_examples=("- has detected an attempt to run as root.",),
        level=Level.CERTAIN,
        masks=("hostfile-or-ssh-problem", "mpi-missing", "rank-killed", "rendezvous-timeout"),
    ),
)
