"""KMP_AFFINITY is set while the launcher is told to bind cores.

## Why it matters
With `--bind_cores_to_rank` the deepspeed launcher gives each rank its cores through `numactl`, and
refuses to start when `KMP_AFFINITY` would bind them as well.

## What to do
Unset the variable, or leave the option out.

## References
deepspeed/utils/numa.py (`get_numactl_cmd`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Environment, Finding, LaunchCommand, Scope, check, fail

CONDITION = Condition(
    "kmp-affinity-with-binding",
    id="DSD1209",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)


@check(CONDITION)
def binding_is_left_to_one(command: LaunchCommand, environment: Environment) -> Iterator[Finding]:
    """Speaks when both would bind."""
    if command.launcher != "deepspeed" or "bind_cores_to_rank" not in command.options:
        return
    value = command.env.get("KMP_AFFINITY", environment.get("KMP_AFFINITY"))
    if value is None:
        return
    yield fail(
        f"`KMP_AFFINITY` is `{value}`, but `--bind_cores_to_rank` needs it unset",
        effect="the launcher stops with `ValueError` in every rank",
        hint="run `unset KMP_AFFINITY`, or take `--bind_cores_to_rank` out",
        value=value,
    )
