"""What every fact is: a frozen record of something that was read and not yet judged."""

from __future__ import annotations

import enum
import functools
import re
from typing import Any, ClassVar

import msgspec


class Why(enum.Enum):
    """Why a fact is missing (docs/architecture.md).

    The first four lead to `skip`, the last two to `unknown`.
    """

    ABSENT = "absent"
    DENIED = "denied"
    NOT_ASKED = "not-asked"
    UNSUPPORTED = "unsupported"
    TIMEOUT = "timeout"
    BROKEN = "broken"


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces a fact: why it could not be read, in words a user can act on."""

    why: Why
    detail: str

    @property
    def is_unknown(self) -> bool:
        """Whether the absence is itself a problem (a timeout, a broken answer)."""
        return self.why in (Why.TIMEOUT, Why.BROKEN)


@functools.cache
def _key(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all facts. The class name, in snake case, is its key in a snapshot."""

    #: Texts that a fix writes back: kept as they are in memory, since a masked text would overwrite
    #: the file; masked, like all else, when a snapshot is written.
    verbatim: ClassVar[bool] = False

    @classmethod
    def key(cls) -> str:
        """The name under which snapshots hold this fact.

        >>> type("TorchBuild", (Fact,), {}).key()
        'torch_build'
        """
        return _key(cls.__name__)


def to_builtins(value: Any) -> Any:
    """JSON-ready form of any fact or struct."""
    return msgspec.to_builtins(value)
