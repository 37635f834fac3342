"""An MPI library is absent or does not fit mpi4py.

## Why it matters
The openmpi, mpich and mvapich launchers, and mpi4py, need an MPI library on every node.

## What to do
Install Open MPI or load its module, and rebuild `mpi4py`.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("mpi-missing", id="DSD1250", scope=Scope.JOB, since="0.1")

HINT = "install Open MPI or load its module, and rebuild `mpi4py`"

SIGNATURES = (
    Signature(
        anchor=(
            "libmpi",
            "cannot load MPI library",
            "mpirun",
            "mpi4py",
            "launcher 'openmpi' not installed",
            "mpicc",
            "Cannot compile MPI",
            "mpi.h",
            "launcher 'mvapich' not installed",
            "launcher 'mpich' not installed",
            "launcher 'impi' not installed",
            "undefined symbol: ompi_",
            "undefined symbol: MPI_",
        ),
        pattern=(
            r"libmpi\w*\.so[\w.]*: cannot open|cannot load MPI library"
            r"|mpirun: (?:command )?not found|No such file or directory: 'mpirun'"
            r"|undefined symbol: (?:ompi|MPI)_\w+|launcher '(?:openmpi"
            r"|mpich|mvapich|impi)' not installed|mpicc: (?:command )?not found"
            r"|Cannot compile MPI programs|Failed building wheel for mpi4py"
            r"|fatal error: '?mpi\.h"
        ),
        examples=(
            "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory",
            "RuntimeError: cannot load MPI library",
            "error: Cannot compile MPI programs. Check your configuration!!!",
            "src/lib-mpi/config.h:22:10: fatal error: mpi.h: No such file or directory",
        ),
        not_examples=("mpirun -np 2 python x.py",),
        weight=70,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        # MPI ends while parts of it do not load: its libraries are of several versions
        anchor=("MPI_ERRORS_ARE_FATAL", "in MPI_Init"),
        pattern=r"MPI_ERRORS_ARE_FATAL|error occurred in MPI_Init",
        examples=(
            "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
            "*** An error occurred in MPI_Init",
        ),
        not_examples=("mean time spent in MPI_Init: 0.3 s",),
        weight=66,
        near=("component_repository_open: unable to open",),
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        anchor=("DLL load failed", "MPI_ERRORS_ARE_FATAL", "in MPI_Init"),
        pattern="DLL load failed(?: while importing MPI)?: |MPI_ERRORS_ARE_FATAL|error occurred in MPI_Init",
        examples=(
            "ImportError: DLL load failed while importing MPI: The specified module could not be found.",
            "*** An error occurred in MPI_Init_thread",
        ),
        not_examples=("time in MPI_Init: 0.3 s",),
        weight=58,
        near=("mpi4py", "MPI"),
        unless=("attempting to detect MPI environment",),
    ),
    Signature(
        anchor=(
            "ORTE_ERROR_LOG",
            "orte_init failed",
            "opal_init failed",
            "MPI_INIT failed",
            "MPI_Init failed",
            "prte_init failed",
            "mpiexec: ",
            "ild wheels for mpi4py",
            "have MPI built in",
            "PMIX ERROR",
            "PRTE_ERROR_LOG",
        ),
        pattern=r"(?:ORTE|PRTE)_ERROR_LOG: |looks like (?:orte_init|opal_init|MPI_INIT|MPI_Init|prte_init) failed|mpiexec: (?:command )?not found|uild wheels for mpi4py|doesn't have MPI built in",
        examples=(
            "[n1:39] [[INVALID],INVALID] ORTE_ERROR_LOG: Not found in file ess_hnp_module.c at line 320",
            "It looks like MPI_INIT failed for some reason; your parallel process is",
            "bash: mpiexec: command not found",
            "RuntimeError: Distributed package doesn't have MPI built in.",
        ),
        not_examples=("mpiexec: starting 4 processes", "a run in which no MPI_INIT failed"),
        weight=52,
        not_near=("not enough slots", "ORTE was unable"),
    ),
    Signature(
        anchor=(
            "ompi_rte_init failed",
            "ompi_mpi_init",
            "pmix_base_select failed",
            "orte_ess_init failed",
            "ess_base_select failed",
        ),
        pattern=r"ompi_rte_init failed|ompi_mpi_init: .{0,60}failed|pmix_base_select failed|orte_ess_init failed|ess_base_select failed",
        examples=("  ompi_mpi_init: ompi_rte_init failed", "  opal_pmix_base_select failed"),
        not_examples=("time in ompi_mpi_init: 0.2 s",),
        weight=50,
    ),
)
