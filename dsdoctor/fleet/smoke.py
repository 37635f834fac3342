"""Short real runs of pairs of nodes: `dsdoctor smoke` with a hostfile for each pair."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsdoctor import files, process
from dsdoctor.fleet.pairing import Pair
from dsdoctor.model import decode
from dsdoctor.model.plain import one_line
from dsdoctor.model.redact import mask

#: What a run may take in addition to its own limit: start, compiling ops, cleaning up.
GRACE_SECONDS = 240.0
#: Each pair of a round gets its own port, from this one on.
FIRST_PORT = 29600


@dataclasses.dataclass(frozen=True)
class Runs:
    """How pairs are run.

    Attributes:
        slots: node to slots.
        command: the start of the command: interpreter, dsdoctor, `smoke`.
        options: further options of `dsdoctor smoke`.
        timeout: seconds for one run.
        at_once: pairs that run at the same time.
        on_end: called when a pair has ended, with the result and the cause.
    """

    slots: Mapping[str, int]
    command: Sequence[str]
    options: Sequence[str] = ()
    timeout: float = 300.0
    at_once: int = 8
    on_end: Callable[[Pair, bool | None, str], None] | None = None

    def run(self, pairs: Sequence[Pair]) -> dict[Pair, bool | None]:
        """Runs pairs that share no node; True passed, False failed, None inconclusive."""
        with concurrent.futures.ThreadPoolExecutor(self.at_once) as pool:
            results = pool.map(self._try_pair, pairs, range(len(pairs)))
            return dict(zip(pairs, results, strict=True))

    def _try_pair(self, pair: Pair, number: int) -> bool | None:
        own = ["--timeout", f"{self.timeout:g}", "--no-bisect", "--format", "json", *self.options]
        limit = self.timeout + GRACE_SECONDS
        if len(pair) == 1:
            done = process.run(self._remote_argv(pair[0], own), timeout=limit, env=os.environ)
        else:
            with tempfile.TemporaryDirectory(prefix="dsdoctor-pair-", dir=Path.cwd()) as folder:
                hostfile = Path(folder) / "hostfile"
                rows = "".join(f"{node} slots={self.slots[node]}\n" for node in pair)
                files.write(hostfile, rows)
                port = str(FIRST_PORT + number)
                places = ["--hostfile", str(hostfile), "--master-port", port]
                done = process.run([*self.command, *places, *own], timeout=limit, env=os.environ)
        report = _report(done)
        # a status without a report is not from smoke: no ssh, no dsdoctor there, a crash
        passed = None
        if report is not None and done.returncode in (0, 1):
            passed = done.returncode == 0
        if self.on_end is not None:
            self.on_end(pair, passed, one_line(mask(_cause(done, report)))[:300])
        return passed

    def _remote_argv(self, node: str, own: Sequence[str]) -> list[str]:
        """A run on one node: a launcher would start the job of a single host here, not there."""
        words = shlex.join([*self.command, *own])
        there = f"cd {shlex.quote(str(Path.cwd()))} && {words}"
        return ["ssh", "-o", "BatchMode=yes", "--", node, there]


def _report(done: process.Result) -> dict[str, Any] | None:
    try:
        found = decode.json(done.stdout)
    except decode.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _cause(done: process.Result, report: Mapping[str, Any] | None) -> str:
    """The first cause of a report, otherwise the last line."""
    causes = (report or {}).get("causes")
    first = causes[0] if isinstance(causes, list) and causes else None
    if isinstance(first, dict):
        return str(first.get("message") or first.get("condition"))
    if report is not None:
        return "" if done.ok else f"`smoke` reports {report.get('verdict') or 'that it failed'}"
    return done.error_text
