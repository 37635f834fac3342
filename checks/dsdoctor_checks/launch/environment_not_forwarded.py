"""Variables of this shell will not reach the other nodes.

## Why it matters
The deepspeed launcher exports to other nodes only variables whose names begin with NCCL, PYTHON, MV2,
UCX or MLFLOW. Others, such as `LD_LIBRARY_PATH`, `CUDA_HOME`, `HF_HOME` and `TORCH_…`, apply only to
this node. Ranks then load different libraries and write to different places.

## What to do
Add the variables to `~/.deepspeed_env` (or `./.deepspeed_env`), one `NAME=VALUE` per line without
blank lines, or set them in the shell startup files of every node.

## References
deepspeed/launcher/runner.py (0.19.8: `EXPORT_ENVS`, `.deepspeed_env`),
deepspeed/accelerator/cuda_accelerator.py (`export_envs`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedEnvFile,
    Environment,
    Finding,
    Hostfile,
    LaunchCommand,
    Missing,
    Scope,
    check,
    is_partial,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import listed

CONDITION = Condition("environment-not-forwarded", id="DSD1211", scope=Scope.JOB, since="0.1")

#: Prefixes that the launcher exports by default.
EXPORTED = ("NCCL", "PYTHON", "MV2", "UCX", "MLFLOW")
#: Variables that change how a rank behaves, so that all ranks need them.
NEEDED = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDA_HOME",
    "HF_HOME",
    "TRANSFORMERS_CACHE",
    "TRANSFORMERS_OFFLINE",
    "TOKENIZERS_PARALLELISM",
)
NEEDED_PREFIXES = (
    "TORCH_",
    "PYTORCH_",
    "DS_",
    "OMP_",
    "HF_HUB_",
    "HF_DATASETS_",
    "TRITON_",
    "GLOO_",
)
#: Read only on this node, by the launcher or when DeepSpeed is installed.
LOCAL = ("DS_ENV_FILE", "DS_BUILD_STRING")
SEVERAL = 2


@check(CONDITION)
def ranks_get_the_same(
    env: Environment,
    hostfile: Hostfile,
    command: LaunchCommand | Missing,
    file: DeepSpeedEnvFile | Missing,
) -> Iterator[Finding]:
    """Judges runs of the deepspeed launcher on several hosts."""
    launcher = command.launcher if isinstance(command, LaunchCommand) else "deepspeed"
    kind = command.options.get("launcher", "pdsh") if isinstance(command, LaunchCommand) else "pdsh"
    if len(hostfile.entries) < SEVERAL or launcher != "deepspeed":
        yield skip("the deepspeed launcher does not start this run on several nodes")
        return
    if kind.lower() == "slurm":
        yield skip("Slurm exports the whole environment to every node")
        return
    if isinstance(file, Missing) and is_partial(env.variables):  # a paste may leave it out
        yield skip(file.detail)
        return
    written = set(file.names) if isinstance(file, DeepSpeedEnvFile) else set()
    lost = [
        name
        for name in sorted(env.variables)
        if (name in NEEDED or name.startswith(NEEDED_PREFIXES))
        and not name.startswith(EXPORTED)
        and name not in written
        and name not in LOCAL
    ]
    if not lost:
        yield ok(written=sorted(written))
        return
    plural = len(lost) > 1
    others = len(hostfile.entries) - 1
    yield warn(
        f"{listed(f'`{name}`' for name in lost)} {'are' if plural else 'is'} set here, but the "
        "deepspeed launcher does not export "
        f"{'them' if plural else 'it'} to the other {'node' if others == 1 else f'{others} nodes'}",
        effect="ranks on other nodes load different libraries or write to different places",
        hint=f"add {'them' if plural else 'it'} to `~/.deepspeed_env`, one `NAME=VALUE` per line",
        variables=lost,
        nodes=others,
        file=file.path if isinstance(file, DeepSpeedEnvFile) else None,
    )
