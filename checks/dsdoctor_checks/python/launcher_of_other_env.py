"""A launcher on PATH starts jobs in another Python environment.

## Why it matters
`deepspeed`, `torchrun` and `accelerate` are scripts whose first line contains an interpreter. If the
first one on PATH belongs to another environment, the job runs there, with another torch or none.

## What to do
Activate the environment, or start the launcher as a module of its interpreter:
`python -m torch.distributed.run`, `python -m deepspeed.launcher.runner`.

## References
- DeepSpeed launcher/runner.py, launcher/launch.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Launcher,
    Launchers,
    Missing,
    NotStated,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import listed

CONDITION = Condition("launcher-of-other-env", id="DSD909", scope=Scope.USER_ENV, since="0.1")
#: Launchers that start ranks with their own interpreter, and the module of each.
MODULES = {
    "deepspeed": "deepspeed.launcher.runner",
    "torchrun": "torch.distributed.run",
    "accelerate": "accelerate.commands.launch",
}
#: The user means the environment of the shell.
BY_SHELL = ("VIRTUAL_ENV", "CONDA_PREFIX")


def has(packages: Packages | Missing, name: str) -> bool:
    """Whether the environment has a package, as far as its packages were read."""
    if isinstance(packages, Missing):
        return True
    try:
        return not packages.origins or bool(packages.origins.get(name)) or name in packages.packages
    except NotStated:
        return True


def started(command: LaunchCommand) -> tuple[str, ...]:
    """Launchers that a command starts by name."""
    words = command.argv[: len(command.argv) - len(command.script_args)]
    return tuple(name for name in MODULES if name in words)


@check(CONDITION)
def launchers_are_of_this_env(
    launchers: Launchers,
    patient: Patient,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Compares the interpreter of each launcher with the one examined.

    With a command, only the launcher counts that it starts by name. A launcher whose package the
    environment does not have is not meant to be of it.
    """
    started_by_name = MODULES.keys() if isinstance(command, Missing) else {*started(command)}
    strange: dict[tuple[str | None, bool], list[Launcher]] = {}
    for launcher in launchers.launchers:
        module = MODULES.get(launcher.name) if launcher.name in started_by_name else None
        if module is None or not has(packages, module.partition(".")[0]):
            continue
        if launcher.path is None or launcher.same_env is not False:
            continue
        if launcher.interpreter_exists is False:  # `launcher-interpreter-missing`
            continue
        meant = patient.chosen_by in BY_SHELL and launcher.name == "deepspeed"
        strange.setdefault((launcher.interpreter, meant), []).append(launcher)
    for (interpreter, meant), found in strange.items():
        names = [f"`{launcher.name}`" for launcher in found]
        modules = [f"`{MODULES[launcher.name]}`" for launcher in found]
        many = len(found) > 1
        yield (fail if meant else warn)(
            f"{listed(names)} on PATH {'are' if many else 'is'}"
            f" {listed(f'`{launcher.path}`' for launcher in found)} and {'run' if many else 'runs'}"
            f" `{interpreter}`, but the interpreter examined is `{patient.executable}`",
            effect="the job runs with the packages of another environment",
            hint=f"put `{patient.bin_dir or patient.prefix}` first on PATH, or run"
            + (
                f" `{patient.executable} -m MODULE` instead, where MODULE is {' or '.join(modules)}"
                if many
                else f" `{patient.executable} -m {MODULES[found[0].name]}` instead"
            ),
            launchers=[launcher.path for launcher in found],
            interpreter=interpreter,
            patient=patient.executable,
        )
    here = [launcher.path for launcher in launchers.launchers if launcher.same_env]
    if here:
        yield ok(launchers=here)


HINT = "start the launcher as a module of the environment's interpreter: `python -m deepspeed.launcher.runner train.py`"

SIGNATURES = (
    Signature(
        # only the runner passes these options to launch.py, and a release knows its own
        pattern=r"\blaunch\.py: error: unrecognized arguments: .{0,400}--(?:enable_each_rank_log|save_pid|no_local_rank|enable_elastic_training|m(?:in|ax)_elastic_nodes|bind_cores_to_rank|bind_core_list)\b",
        source="deepspeed 0.6-0.19 launcher/runner.py, launcher/launch.py",
        message="DeepSpeed's `launch.py` rejects an option that its runner passes: the two come from different releases",
        examples=(
            "launch.py: error: unrecognized arguments: --enable_each_rank_log=None",
            "launch.py: error: unrecognized arguments: --save_pid=1 --no_local_rank",
            "launch.py: error: unrecognized arguments: --no_local_rank",
            "launch.py: error: unrecognized arguments: --enable_elastic_training",
            "launch.py: error: unrecognized arguments: --min_elastic_nodes=1",
            "launch.py: error: unrecognized arguments: --max_elastic_nodes=2",
            "launch.py: error: unrecognized arguments: --bind_cores_to_rank",
            "launch.py: error: unrecognized arguments: --bind_core_list=0-7",
        ),
        not_examples=("launch.py: error: unrecognized arguments: --enable_each_rank",),
    ),
)
