"""What this run asks for: the yardstick that checks judge the machine against."""

from __future__ import annotations

import enum

from dsdoctor.model.facts.base import Fact


class Scope(enum.Enum):
    """Who can mend a condition: the node's owner, the user's environment, or the job."""

    NODE = "node"
    USER_ENV = "user-env"
    JOB = "job"
    TOOL = "tool"


class RunNeeds(Fact, frozen=True, kw_only=True):
    """The request, as the command line gave it.

    Attributes:
        gpus: selectors given with --gpus (index, UUID or MIG id), in order; empty = all.
        expect_gpus: how many GPUs must be there, or None.
        config_path: the DeepSpeed config given with --config.
        config: that config, parsed as DeepSpeed parses it; None when not given or not parsable.
        quick: torch is not started.
        deep: trial compiles and GPU work are allowed.
        cwd: the folder the job starts in.
        build_ops: ops that `DS_BUILD_*=1` in the environment asks to pre-build (`OPS` for all).
        command: the command behind `check --`, empty when none was given.
        hostfile: the file given with --hostfile.
    """

    gpus: tuple[str, ...] = ()
    expect_gpus: int | None = None
    config_path: str | None = None
    config: dict[str, object] | None = None
    quick: bool = False
    deep: bool = False
    cwd: str = "."
    build_ops: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    hostfile: str | None = None

    @property
    def wants_gpu(self) -> bool:
        """Whether the user said that GPUs must be there."""
        return bool(self.gpus) or bool(self.expect_gpus)
