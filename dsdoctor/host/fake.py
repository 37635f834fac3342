"""A machine made of dictionaries, for the tests of probes.

Public as `dsdoctor.testing.FakeHost`.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from dsdoctor.host.door import TOOL_SECONDS, DiskUsage, HostError, Stat
from dsdoctor.model.facts.base import Why
from dsdoctor.process import Result


class FakeHost:
    """A machine that answers from dictionaries; whatever they do not contain is absent.

    Attributes:
        files: path to content, or to the error that reading it raises. Folders follow from files.
        links: path to the path that it links to.
        commands: a command line, or the beginning of one, to what running it returns: its standard
            output, a whole `Result`, or the error raised. The longest beginning that fits is used.
        queries: platform values by name (`Host.query`).
        stats: path to what is there, if that does not follow from `files`.
        disks: path to its file system; 1 TiB, half of it free, for other paths.
        ran: every command that was run, in order.
    """

    def __init__(
        self,
        *,
        system: str = "Linux",
        env: Mapping[str, str] | None = None,
        files: Mapping[str, bytes | str | HostError] | None = None,
        links: Mapping[str, str] | None = None,
        commands: Mapping[str, Result | str | HostError] | None = None,
        queries: Mapping[str, Any] | None = None,
        stats: Mapping[str, Stat | HostError] | None = None,
        disks: Mapping[str, DiskUsage] | None = None,
    ) -> None:
        self._system = system
        self._env = dict(env or {})
        self.files = dict(files or {})
        self.links = dict(links or {})
        self.commands = dict(commands or {})
        self.queries = dict(queries or {})
        self.stats = dict(stats or {})
        self.disks = dict(disks or {})
        self.ran: list[tuple[str, ...]] = []

    @property
    def system(self) -> str:
        """See Host."""
        return self._system

    @property
    def env(self) -> Mapping[str, str]:
        """See Host."""
        return self._env

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float = TOOL_SECONDS,
        idle_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
    ) -> Result:
        self.ran.append(tuple(argv))
        line = " ".join(argv)
        for prefix in sorted(self.commands, key=len, reverse=True):
            if line == prefix or line.startswith(prefix):
                answer = self.commands[prefix]
                if isinstance(answer, HostError):
                    raise answer
                if isinstance(answer, str):
                    return Result(argv=tuple(argv), returncode=0, stdout=answer.encode())
                return answer
        raise HostError(Why.ABSENT, f"`{argv[0]}` does not exist")

    def _follow_links(self, path: str) -> str:
        for link, target in sorted(self.links.items(), reverse=True):
            if path == link or path.startswith(link + "/"):
                return target + path[len(link) :]
        return path

    def read(self, path: str) -> bytes:
        content = self.files.get(path, self.files.get(self._follow_links(path)))
        if content is None:
            raise HostError(Why.ABSENT, f"`{path}` does not exist")
        if isinstance(content, HostError):
            raise content
        return content.encode() if isinstance(content, str) else content

    def readlink(self, path: str) -> str:
        return self._follow_links(path)

    def listdir(self, path: str) -> list[str]:
        base = self._follow_links(path).rstrip("/") + "/"
        names = {name[len(base) :].split("/")[0] for name in self.files if name.startswith(base)}
        if not names:
            raise HostError(Why.ABSENT, f"`{path}` does not exist")
        return sorted(names)

    def glob(self, pattern: str) -> list[str]:
        depth = pattern.count("/")
        found = set()
        for name in [*self.files, *self.links, *self.stats]:
            parts = name.split("/")
            candidate = "/".join(parts[: depth + 1])
            if fnmatch.fnmatch(candidate, pattern) and candidate.count("/") == depth:
                found.add(candidate)
        return sorted(found)

    def stat(self, path: str) -> Stat:
        given = self.stats.get(path)
        if isinstance(given, HostError):
            raise given
        if given is not None:
            return given
        real = self._follow_links(path)
        if real in self.files:
            content = self.files[real]
            if isinstance(content, HostError):
                raise content
            return Stat(kind="file", size=len(content), mode=0o755)
        base = real.rstrip("/") + "/"
        if any(name.startswith(base) for name in [*self.files, *self.links, *self.stats]):
            return Stat(kind="dir", mode=0o755)
        raise HostError(Why.ABSENT, f"`{path}` does not exist")

    def disk(self, path: str) -> DiskUsage:
        return self.disks.get(path, DiskUsage(total=1 << 40, free=1 << 39))

    def which(self, name: str, path: str | None = None) -> str | None:
        where = self._env.get("PATH", "") if path is None else path
        for folder in where.split(":"):
            candidate = posixpath.join(folder, name)
            if folder and (candidate in self.files or candidate in self.links):
                return candidate
        return None

    def query(self, name: str) -> Any:
        if name not in self.queries:
            raise HostError(Why.UNSUPPORTED, f"{name} is not known here")
        return self.queries[name]

    def connect(self, host: str, port: int, timeout: float) -> str | None:
        return "Connection refused"
