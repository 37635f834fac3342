"""An MPI library is missing or does not match mpi4py.

## Why it matters
The openmpi, mpich and mvapich launchers, and mpi4py, need an MPI library on every node.

## What to do
Install Open MPI or load its environment module, then rebuild mpi4py with
`python -m pip install --force-reinstall --no-cache-dir mpi4py`.

## References
- deepspeed 0.19.8 comm/comm.py (`mpi_discovery`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip

CONDITION = Condition("mpi-missing", id="DSD1250", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def ranks_of_mpi_are_known(
    command: LaunchCommand, packages: Packages, run: RunNeeds, patient: Patient | Missing
) -> Iterator[Finding]:
    """Warns if mpirun starts a script with DeepSpeed's own options and mpi4py is missing.

    transformers and accelerate tell DeepSpeed not to ask MPI.
    """
    own = command.has_script_option("deepspeed", "ds_config")
    plain = command.launcher == "mpirun" and command.inner in (None, "python")
    if not plain or not own or run.framework in ("hf", "accelerate", "lightning"):
        yield skip("mpirun does not start a script with DeepSpeed's options")
        return
    if packages.version("mpi4py") is not None or packages.version("deepspeed") is None:
        yield ok(mpi4py=packages.version("mpi4py"))
        return
    install = pip(patient, packages, "install mpi4py")
    yield warn(
        "mpirun starts the ranks, but `mpi4py`, from which DeepSpeed learns them, is not installed",
        effect="`init_distributed` stops with `No module named 'mpi4py'`, unless the script sets RANK,"
        " WORLD_SIZE and LOCAL_RANK itself",
        hint=f"run `{install}`, or start with `deepspeed` or `torchrun`",
        package="mpi4py",
    )


HINT = "install Open MPI or load its environment module, and rebuild `mpi4py`"

SIGNATURES = (
    Signature(
        pattern=r"libmpi\w*\.so[\w.]*: cannot open",
        source="glibc 2.17-2.41 elf/dl-load.c, for mpi4py and torch's MPI backend",
        examples=(
            "ImportError: libmpi.so.40: cannot open shared object file: No such file or directory",
        ),
        not_examples=(
            "ImportError: /root/.cache/torch_extensions/py311_cu121/fused_adam/fused_adam.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="cannot load MPI library",
        source="mpi4py 4.1.2 _mpiabi.py",
        examples=("RuntimeError: cannot load MPI library",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="mpirun: (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=("mpirun: not found",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="No such file or directory: 'mpirun'",
        source="python 3.3-3.14 Lib/subprocess.py, Objects/exceptions.c",
        examples=("No such file or directory: 'mpirun'",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern=r"undefined symbol: (?:ompi|MPI)_\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "undefined symbol: ompi_name",
            "undefined symbol: MPI_name",
        ),
        not_examples=("undefined symbol: MPI_ is fine",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="launcher '(?:openmpi|mpich|mvapich|impi)' not installed",
        source="deepspeed 0.3-0.19 launcher/runner.py",
        examples=(
            "RuntimeError: launcher 'openmpi' not installed.",
            "launcher 'mpich' not installed",
            "launcher 'mvapich' not installed",
            "launcher 'impi' not installed",
        ),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="mpicc: (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=("mpicc: not found",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="Cannot compile MPI programs",
        source="mpi4py 2.0-4.1 conf/mpidistutils.py",
        examples=("error: Cannot compile MPI programs. Check your configuration!!!",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="Failed building wheel for mpi4py",
        source="pip 9-26 _internal/wheel_builder.py",
        examples=("ERROR: Failed building wheel for mpi4py",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern=r"fatal error: '?mpi\.h",
        source="gcc 4.8-14 libcpp/files.cc",
        examples=("src/lib-mpi/config.h:22:10: fatal error: mpi.h: No such file or directory",),
        level=Level.CERTAIN,
        masks=("launched-without-deepspeed",),
    ),
    # MPI ends while parts of it do not load: its libraries are of several versions
    Signature(
        pattern="MPI_ERRORS_ARE_FATAL|error occurred in MPI_Init",
        source=(
            "openmpi 1.4-4.1 ompi/errhandler/errhandler_predefined.c, ompi/runtime/ompi_mpi_init.c"
        ),
        examples=(
            "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
            "*** An error occurred in MPI_Init",
        ),
        level=Level.STRONG,
        near=("component_repository_open: unable to open",),
        masks=("launched-without-deepspeed",),
    ),
    Signature(
        pattern="DLL load failed(?: while importing MPI)?: |error occurred in MPI_Init",
        source=(
            "python 3.3-3.14 Python/dynload_win.c; openmpi 1.4-4.1 "
            "ompi/errhandler/errhandler_predefined.c"
        ),
        examples=(
            "ImportError: DLL load failed while importing MPI: The specified module could not be found.",
            "*** An error occurred in MPI_Init_thread",
        ),
        near=("mpi4py", "MPI"),
        unless=("attempting to detect MPI environment",),
    ),
    Signature(
        pattern="(?:ORTE|PRTE)_ERROR_LOG: ",
        source="openmpi 1.4-4.1 orte/util/error_strings.c, orte/mca/errmgr; prrte 1-3",
        examples=(
            "[n1:39] [[INVALID],INVALID] ORTE_ERROR_LOG: Not found in file ess_hnp_module.c at line 320",
            "PRTE_ERROR_LOG: ",
        ),
        not_near=("not enough slots", "ORTE was unable"),
    ),
    Signature(
        pattern="looks like (?:orte_init|opal_init|MPI_INIT|MPI_Init|prte_init) failed",
        source="openmpi 1.4-4.1 help-mpi-runtime.txt, help-orte-runtime.txt, help-opal-runtime.txt",
        examples=(
            "It looks like MPI_INIT failed for some reason; your parallel process is",
            "It looks like orte_init failed for some reason; your parallel process is",
            "looks like opal_init failed",
            "looks like MPI_Init failed",
            "looks like prte_init failed",
        ),
        not_near=("not enough slots", "ORTE was unable"),
    ),
    Signature(
        pattern="mpiexec: (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=("bash: mpiexec: command not found",),
        not_near=("not enough slots", "ORTE was unable"),
    ),
    Signature(
        pattern="uild wheels for mpi4py",
        source="pip 9-26 _internal/commands/install.py",
        examples=("uild wheels for mpi4py",),
        not_near=("not enough slots", "ORTE was unable"),
    ),
    Signature(
        pattern="doesn't have MPI built in",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=("RuntimeError: Distributed package doesn't have MPI built in.",),
        not_near=("not enough slots", "ORTE was unable"),
    ),
    Signature(
        pattern="ompi_rte_init failed",
        source="openmpi 1.8-4.1 ompi/runtime/ompi_mpi_init.c",
        examples=("  ompi_mpi_init: ompi_rte_init failed",),
    ),
    Signature(
        pattern="ompi_mpi_init: .{0,60}failed",
        source="openmpi 1.8-4.1 ompi/runtime/ompi_mpi_init.c",
        examples=("  ompi_mpi_init: ompi_rte_init failed",),
        not_examples=("time in ompi_mpi_init: 0.2 s",),
    ),
    Signature(
        pattern="pmix_base_select failed",
        source="openmpi 2.0-4.1 opal/mca/pmix/base, orte/runtime/orte_init.c",
        examples=("  opal_pmix_base_select failed",),
    ),
    Signature(
        pattern="orte_ess_init failed",
        source="openmpi 2.0-4.1 opal/mca/pmix/base, orte/runtime/orte_init.c",
        examples=("orte_ess_init failed",),
    ),
    Signature(
        pattern="ess_base_select failed",
        source="openmpi 2.0-4.1 opal/mca/pmix/base, orte/runtime/orte_init.c",
        examples=("ess_base_select failed",),
    ),
    Signature(
        pattern=r"but OMPI was not built with SLURM(?:'s)? (?:PMI )?support",
        source="openmpi 2.0-4.1 orte/mca/ess/pmi, ompi/runtime/help-mpi-runtime.txt",
        message="Open MPI was built without Slurm's PMI, so `srun` cannot start its programs directly",
        hint="start with `mpirun` inside the job, or with `srun --mpi=pmix` and an Open MPI that was built with PMIx",
        examples=(
            "but OMPI was not built with SLURM's PMI support and therefore cannot",
            "but OMPI was not built with SLURM support. This usually happens",
        ),
        level=Level.STRONG,
        masks=("rank-killed", "native-crash", "rendezvous-timeout"),
    ),
    Signature(
        pattern=r"\b(?P<tool>orted|prted): (?:command )?not found|exec: (?:orted|prted): not found",
        source="openmpi 1.4-4.1 and prrte 1-4 over ssh; bash 3.2-5.3 execute_cmd.c",
        message="Open MPI is not on the PATH of a node that `mpirun` reaches by ssh",
        hint="install Open MPI at the same path on each node, start with its full path (`/opt/openmpi/bin/mpirun`), or pass `--prefix`",
        examples=(
            "bash: orted: command not found",
            "bash: line 1: prted: command not found",
            "sh: 1: exec: orted: not found",
        ),
        not_examples=("bash: my_orted: command not found",),
        level=Level.STRONG,
        masks=("hostfile-or-ssh-problem",),
    ),
)
