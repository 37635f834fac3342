"""A module that the job script loads does not exist on this cluster, or could not be loaded.

## Why it matters
`module load` prints an error and the script goes on without what the module would have set up: a compiler, CUDA,
an MPI library or Python. A later command then fails with `command not found`, or uses another version.

## What to do
`module avail NAME` and `module spider NAME` list what this cluster and this kind of node have. Write the full name
and version that they show. Some clusters have modules on compute nodes that the login nodes do not have, and
need a `module use PATH` or a base module first. `set -e` after the loads stops the script at the first failure.

## References
- https://lmod.readthedocs.io/en/latest/010_user.html
- https://modules.readthedocs.io/en/latest/module.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("environment-module-missing", id="DSD1659", scope=Scope.USER_ENV, since="0.1")

HINT = "list what this node has with `module avail` or `module spider NAME`, and load that name and version in the job script"

#: What fails later for want of the module.
_VICTIMS = (
    "launch-file-missing",
    "cuda-toolkit-missing",
    "cuda-home-invalid",
    "jit-build-compiler-missing",
    "mpi-missing",
    "env-not-activated",
    "deepspeed-missing",
    "torch-missing",
    "script-module-missing",
)

SIGNATURES = (
    Signature(
        pattern=r"The following module\(s\) are unknown:(?: +\"(?P<module>[^\"]{1,200})\")?",
        source="Lmod 5.8-9 messageDir/en.lua (e_Failed_Load)",
        message="The module `{module}` does not exist on this cluster",
        examples=(
            'Lmod has detected the following error:  The following module(s) are unknown: "cuda/12.4"',
            "Lmod has detected the following error: The following module(s) are unknown:",
        ),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"These module\(s\)(?: or extension\(s\))? exist but cannot be loaded as requested:",
        source="Lmod 5.8-9 messageDir/en.lua (e_Failed_Load_2)",
        message="A module exists, but other modules must be loaded before it",
        hint="run `module spider NAME/VERSION`: it lists the modules to load before it",
        examples=(
            'These module(s) or extension(s) exist but cannot be loaded as requested: "cuda/12.4"',
            'These module(s) exist but cannot be loaded as requested: "openmpi/4.1"',
        ),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"Cannot load module \"(?P<module>[^\"]{1,200})\" (?:without these module\(s\) loaded|because these module\(s\) are loaded)",
        source="Lmod 5.8-9 messageDir/en.lua (e_Prereq, e_Conflict)",
        message="The module `{module}` conflicts with the modules that are loaded",
        hint="load the modules that it lists first, or unload (`module purge`) those that conflict with it",
        examples=(
            'Cannot load module "openmpi/4" without these module(s) loaded:',
            'Cannot load module "cuda/12" because these module(s) are loaded:',
        ),
        not_examples=('the module openmpi" without these module(s) loaded',),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"Unable to locate a modulefile for '?(?P<module>[\w./+-]{1,200})",
        source="Environment Modules 3.2-5.5 ModuleCmd_Load.c, tcl/main.tcl",
        message="The module `{module}` does not exist on this cluster",
        examples=(
            "ERROR: Unable to locate a modulefile for 'cuda/12.4'",
            "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'openmpi/3.1'",
        ),
        not_examples=("Unable to locate a modulefile for ''",),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"\bERROR: (?P<module>[\w./+-]{1,200}) cannot be loaded due to (?P<why>missing prereq|a conflict)",
        source="Environment Modules 4.0-5.5 tcl/report.tcl",
        message="The module `{module}` cannot be loaded: {why}",
        hint="load the modules that the next line lists first, or unload (`module purge`) those that conflict with it",
        examples=(
            "  ERROR: openmpi/4.1 cannot be loaded due to missing prereq.",
            "ERROR: cuda/12 cannot be loaded due to a conflict.",
        ),
        not_examples=("what cannot be loaded due to a conflict",),
        masks=_VICTIMS,
        goes_on=True,
    ),
    Signature(
        pattern=r"(?:^|[\s:])module: (?:command )?not found$",
        source="bash 3.2-5.3 execute_cmd.c; dash 0.5 src/exec.c",
        message="The command `module` is not defined in the shell of the job script",
        hint="start the script with `#!/bin/bash -l`, or source the initialization file of the cluster's module system (such as `/etc/profile.d/modules.sh`) before the first `module load`",
        examples=(
            "/var/spool/slurmd/job412/slurm_script: line 9: module: command not found",
            "run.sh: 3: module: not found",
            "module: command not found",
        ),
        not_examples=("Error: module: not found in the registry",),
        masks=_VICTIMS,
        goes_on=True,
    ),
)
