"""A host that records every question with its answer, for a `ReplayHost`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from dsdoctor import process
from dsdoctor.host.door import TOOL_SECONDS, DiskUsage, Host, HostError, Stat

T = TypeVar("T")


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return msgspec.to_builtins(value)


class RecordingHost:
    """Wraps a host and records every question with its answer, for a ReplayHost.

    Attributes:
        log: question (a JSON text) to answer.
    """

    def __init__(self, inner: Host) -> None:
        self._inner = inner
        self.log: dict[str, Any] = {}

    @property
    def system(self) -> str:
        """See Host."""
        return self._inner.system

    @property
    def env(self) -> Mapping[str, str]:
        """See Host."""
        return self._inner.env

    def _ask(self, name: str, call: Callable[[], T], *key: Any) -> T:
        question = json.dumps([name, *key])
        try:
            answer = call()
        except HostError as error:
            self.log[question] = {"missing": msgspec.to_builtins(error.missing)}
            raise
        self.log[question] = {"ok": _jsonable(answer)}
        return answer

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = TOOL_SECONDS,
        idle_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> process.Result:
        return self._ask(
            "run",
            lambda: self._inner.run(
                argv, timeout=timeout, idle_timeout=idle_timeout, env=env, cwd=cwd, stdin=stdin
            ),
            list(argv),
        )

    def read(self, path: str) -> bytes:
        return self._ask("read", lambda: self._inner.read(path), path)

    def readlink(self, path: str) -> str:
        return self._ask("readlink", lambda: self._inner.readlink(path), path)

    def listdir(self, path: str) -> list[str]:
        return self._ask("listdir", lambda: self._inner.listdir(path), path)

    def glob(self, pattern: str) -> list[str]:
        return self._ask("glob", lambda: self._inner.glob(pattern), pattern)

    def stat(self, path: str) -> Stat:
        return self._ask("stat", lambda: self._inner.stat(path), path)

    def disk(self, path: str) -> DiskUsage:
        return self._ask("disk", lambda: self._inner.disk(path), path)

    def which(self, name: str, path: str | None = None) -> str | None:
        return self._ask("which", lambda: self._inner.which(name, path), name, path)

    def query(self, name: str) -> Any:
        return self._ask("query", lambda: self._inner.query(name), name)

    def connect(self, host: str, port: int, timeout: float) -> str | None:
        return self._ask("connect", lambda: self._inner.connect(host, port, timeout), host, port)

    def dump(self) -> dict[str, Any]:
        """The recording, ready for JSON."""
        return {"system": self.system, "env": dict(self.env), "answers": self.log}
