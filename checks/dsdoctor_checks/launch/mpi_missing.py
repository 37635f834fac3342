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
)
