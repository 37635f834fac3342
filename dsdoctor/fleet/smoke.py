"""Real short runs of gangs of nodes: `dsdoctor smoke` over a hostfile for each gang."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from dsdoctor import process
from dsdoctor.fleet.gangs import Gang

#: What a run may take besides its own limit: start, compiling of ops, cleaning up.
GRACE_SECONDS = 240.0
#: Each gang of a round gets a port of its own.
FIRST_PORT = 29600


@dataclasses.dataclass(frozen=True)
class Runs:
    """How gangs are run.

    Attributes:
        slots: node to slots.
        command: beginning of the command: interpreter and `-m dsdoctor smoke`.
        options: further options of `dsdoctor smoke`.
        timeout: seconds for one run.
        at_once: gangs that run at the same time.
        told: is told how a gang ended, with its cause.
    """

    slots: Mapping[str, int]
    command: Sequence[str]
    options: Sequence[str] = ()
    timeout: float = 300.0
    at_once: int = 8
    told: Callable[[Gang, bool | None, str], None] | None = None

    def run(self, gangs: Sequence[Gang]) -> dict[Gang, bool | None]:
        """Runs gangs that share no node; True passed, False failed, None cannot be told."""
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            results = pool.map(self._one, gangs, range(len(gangs)))
            return dict(zip(gangs, results, strict=True))

    def _one(self, gang: Gang, number: int) -> bool | None:
        if len(gang) == 1:
            # a launcher runs a single host's job here and not there: that would say nothing of it
            return None
        with tempfile.TemporaryDirectory(prefix="dsdoctor-gang-", dir=Path.cwd()) as folder:
            hostfile = Path(folder) / "hostfile"
            hostfile.write_text("".join(f"{node} slots={self.slots[node]}\n" for node in gang))
            argv = [
                *self.command,
                "--hostfile",
                str(hostfile),
                "--master-port",
                str(FIRST_PORT + number),
                "--timeout",
                f"{self.timeout:g}",
                "--no-bisect",
                "--format",
                "json",
                *self.options,
            ]
            done = process.run(argv, timeout=self.timeout + GRACE_SECONDS, env=os.environ)
        passed = {0: True, 1: False}.get(done.returncode if done.returncode is not None else -1)
        if self.told is not None:
            self.told(gang, passed, _cause(done))
        return passed


def _cause(done: process.Result) -> str:
    """The first cause of a report, or else what was said last."""
    try:
        report = msgspec.json.decode(done.stdout)
        causes = report.get("causes") or ()
        if causes:
            return str(causes[0].get("message") or causes[0].get("condition"))
    except (msgspec.DecodeError, AttributeError):
        pass
    return "" if done.ok else done.error_text
