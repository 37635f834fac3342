"""KMP_AFFINITY is set and the launcher also binds cores.

## Why it matters
With `--bind_cores_to_rank` the deepspeed launcher binds each rank to cores with `numactl`. It stops
if `KMP_AFFINITY` is set, which would bind them too.

## What to do
Unset the variable, or remove the option.

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
    """Fails if both would bind cores."""
    if command.launcher != "deepspeed" or "bind_cores_to_rank" not in command.options:
        return
    value = command.env.get("KMP_AFFINITY", environment.get("KMP_AFFINITY"))
    if value is None:
        return
    yield fail(
        f"`KMP_AFFINITY` is `{value}`, but `--bind_cores_to_rank` needs it unset",
        effect="the launcher stops with `ValueError` in every rank",
        hint="run `unset KMP_AFFINITY`, or remove `--bind_cores_to_rank`",
        value=value,
    )
