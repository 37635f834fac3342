"""A machine from a recording."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsdoctor import process
from dsdoctor.host.door import TOOL_SECONDS, DiskUsage, HostError, Stat
from dsdoctor.model.facts.base import Missing, Why


class ReplayHost:
    """A machine from a recording. What was not recorded is absent."""

    def __init__(self, recording: Mapping[str, Any]) -> None:
        self._system = str(recording["system"])
        self._env: dict[str, str] = dict(recording["env"])
        self._answers: Mapping[str, Any] = recording["answers"]

    @property
    def system(self) -> str:
        """See Host."""
        return self._system

    @property
    def env(self) -> Mapping[str, str]:
        """See Host."""
        return self._env

    def _recorded(self, name: str, *key: Any) -> Any:
        answer = self._answers.get(json.dumps([name, *key]))
        if answer is None:
            raise HostError(Why.ABSENT, f"`{key[0]}` is not in the recording")
        if "missing" in answer:
            missing = msgspec.convert(answer["missing"], Missing)
            raise HostError(missing.why, missing.detail)
        value = answer["ok"]
        if isinstance(value, dict) and set(value) == {"base64"}:
            return base64.b64decode(value["base64"])
        return value

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
        return msgspec.convert(self._recorded("run", list(argv)), process.Result)

    def read(self, path: str) -> bytes:
        return bytes(self._recorded("read", path))

    def readlink(self, path: str) -> str:
        return str(self._recorded("readlink", path))

    def listdir(self, path: str) -> list[str]:
        return list(self._recorded("listdir", path))

    def glob(self, pattern: str) -> list[str]:
        try:
            return list(self._recorded("glob", pattern))
        except HostError as error:
            if error.missing.why is Why.ABSENT:
                return []
            raise

    def stat(self, path: str) -> Stat:
        return msgspec.convert(self._recorded("stat", path), Stat)

    def disk(self, path: str) -> DiskUsage:
        return msgspec.convert(self._recorded("disk", path), DiskUsage)

    def which(self, name: str, path: str | None = None) -> str | None:
        try:
            found = self._recorded("which", name, path)
        except HostError:
            return None
        return None if found is None else str(found)

    def query(self, name: str) -> Any:
        return self._recorded("query", name)

    def connect(self, host: str, port: int, timeout: float) -> str | None:
        answer = self._recorded("connect", host, port)
        return None if answer is None else str(answer)
