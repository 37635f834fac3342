"""What dsdoctor itself observes, for packs to map to conditions. Imports nothing heavy (hooks)."""

from __future__ import annotations

import enum


class Observation(enum.Enum):
    """What dsdoctor itself observes of a run or a machine (`Condition.names`)."""

    NO_RENDEZVOUS = "no-rendezvous"
    """A rank never joined the process group."""
    NO_COLLECTIVE = "no-collective"
    """A rank never reached a collective that the others wait in."""
    BUILD_WAITS = "build-waits"
    """Ranks wait for the lock of an op's build."""
    KILLED_FOR_MEMORY = "killed-for-memory"
    """The kernel killed a rank because memory ran out."""
    KILLED = "killed"
    """A rank was killed for an unknown reason."""
    PEER_GONE = "peer-gone"
    """A rank reports that another one closed its connection."""
    LAUNCHER_GONE = "launcher-gone"
    """The launcher ended before its ranks."""
    WRONG_VALUES = "wrong-values"
    """Ranks, or a run and its reference, disagree on a value."""
    LOSS_UNSCALED = "loss-unscaled"
    """Gradients are divided by a loss scale that the loss was not multiplied by."""
    NOT_FINITE = "not-finite"
    """The loss or the gradients are not finite."""
    SETTING_IGNORED = "setting-ignored"
    """DeepSpeed runs with another setting than the config asks for."""
    CHECKPOINT_DIFFERS = "checkpoint-differs"
    """A checkpoint does not give back what was saved."""
    NO_RANK_ENVIRONMENT = "no-rank-environment"
    """The launcher did not pass a process its rank."""
    WRONG_RANKS = "wrong-ranks"
    """The launcher started other ranks than it was asked for."""
    WRONG_DEVICES = "wrong-devices"
    """Ranks see other GPUs than they were given."""
    NVML_SLOW = "nvml-slow"
    """NVML did not answer in time."""
