"""Decides within the budget, whatever hangs.

The supervisor never accesses a GPU and never waits for a process: it starts a worker in its own
session, looks for the worker's file, and at the end of the budget leaves the worker running. If the
worker is only slow, the next hook uses its verdict.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsdoctor import proc_stat
from dsdoctor.hook import job_end
from dsdoctor.hook.decide import Decision, decide, unknown
from dsdoctor.hook.limits import given_up, limits
from dsdoctor.hook.request import (
    Request,
    gpu_selectors,
    has_job_environment,
    job_id,
    node_name,
)
from dsdoctor.hook.rundir import NODE_FILE, STUCK_SECONDS, RunFolder, default_path, read_job
from dsdoctor.model.observation import Observation
from dsdoctor.version import __version__

if TYPE_CHECKING:
    from dsdoctor.process import Detached

_POLL = 0.01
#: How long a worker may take to end its children: at the end of the budget, and after a signal.
_LAST_SECONDS = 0.1
_END_SECONDS = 0.5
#: Share of an epilog's budget for judging, after it has waited for processes to end.
_JUDGE_SHARE = 0.3
#: Status of a worker whose task contains a mistake (`worker.MISUSE`, not imported here).
_MISUSE = 2
#: Hooks that Slurm runs outside a job, unless PrologFlags has RunInJob.
_OUTSIDE = ("slurm-prolog", "slurm-epilog")


def process_age() -> float:
    """Seconds since this process was started, by the kernel's clock; 0 if that is not known."""
    try:
        ticks = proc_stat.parse(Path("/proc/self/stat").read_bytes()).started
        started = ticks / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, AttributeError):
        return 0.0


class Supervisor:
    """One run of a hook.

    Attributes:
        request: options of the hook.
        folder: the run folder.
        env: environment of the hook.
        begun: when its process was started (monotonic clock).
        deadline: when it must have decided (the same clock).
        selectors: the GPUs to judge; None = all of the node, () = the job requests none.
        uuids, ecc, left: from the verdict, about these GPUs and about processes that a job left,
            for the notes of the job and of the drain; empty without a verdict.
    """

    def __init__(
        self, request: Request, folder: RunFolder, env: Mapping[str, str], begun: float
    ) -> None:
        self.request = request
        self.folder = folder
        self.env = env
        self.begun = begun
        self.deadline = limits(request, begun, given_up()).decide
        self.selectors = gpu_selectors(request, env)
        self.uuids: dict[str, str] = {}
        self.ecc: dict[str, Any] = {}
        self.left: list[Any] = []
        self.in_job = request.kind in _OUTSIDE and is_in_job()
        if request.kind == "slurm-task-prolog" and self.selectors and request.gpus is None:
            self.selectors = self._by_uuid(self.selectors)

    def _by_uuid(self, selectors: tuple[str, ...]) -> tuple[str, ...]:
        """The UUIDs of the job's GPUs, as noted by its prolog, which saw the host's indices."""
        node = node_name(self.env)
        noted = read_job(default_path(root=True), node, job_id(self.env))
        return tuple(noted.values()) if len(noted) == len(selectors) else selectors

    @property
    def key(self) -> str:
        """Hash of the settings of a verdict; hooks with other settings must not reuse it."""
        library = os.environ.get("LD_LIBRARY_PATH")  # where a driver's library is searched first
        parts = [__version__, sorted(self.request.ignore), library]
        if self.in_job:  # the verdict is about this job's GPUs alone
            parts.append(job_id(self.env))
        text = json.dumps([*parts, self.request.limits], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def _max_age(self) -> float:
        """The maximum age of a verdict; one that was made during this run is always accepted."""
        return max(self.request.max_age, time.monotonic() - self.begun)

    def run(self) -> Decision:
        """Decides, before the end of the budget."""
        judged = self._node() if self.request.shared else self._ask_own_worker()
        if isinstance(judged, Decision):
            return judged
        reused = bool(judged.get("reused"))
        if self.request.shared and self._must_judge_selection(judged):
            own = self._ask_own_worker(snapshot=True)
            if isinstance(own, Decision):
                return own
            judged = own
        known = judged.get("uuids", {})
        self.uuids = {s: known.get(s, s) for s in self.selectors or known}
        counts = judged.get("ecc", {})
        self.ecc = {uuid: counts[uuid] for uuid in self.uuids.values() if uuid in counts}
        self.left = judged.get("left", [])
        return decide(
            judged,
            wants_gpu=self.selectors != (),
            fail_closed=self.request.fail_closed,
            dry_run=self.request.dry_run,
            reused=reused,
        )

    def _must_judge_selection(self, judged: dict[str, Any]) -> bool:
        """Whether the selected GPUs need their own verdict: a faulty node may have healthy GPUs."""
        if not self.selectors:
            return False
        names = set(judged.get("uuids", {})) | set(judged.get("uuids", {}).values())
        names |= set(judged.get("mig", ()))
        known = all(
            selector in names or any(name.startswith(selector) for name in names if "-" in selector)
            for selector in self.selectors
        )
        return not known or any(
            row.get("status") in ("fail", "warn") for row in judged.get("findings", ())
        )

    def _node(self) -> dict[str, Any] | Decision:
        """The node's verdict: a recent one, or that of a worker of this hook or another."""
        worker: Detached | None = None
        while True:
            found = self.folder.fresh(NODE_FILE, self._max_age, self.key)
            if found is not None:
                return {**found, "reused": worker is None}
            ended = worker.poll() if worker else None
            if worker is not None and ended is not None:
                # it may have written its verdict after `fresh` was called above
                found = self.folder.fresh(NODE_FILE, self._max_age, self.key)
                if found is not None:
                    return {**found, "reused": False}
                return self._worker_ended(worker, ended)
            if worker is None:
                lock = self.folder.lock()
                if lock is not None:
                    found = self.folder.fresh(NODE_FILE, self._max_age, self.key)
                    if found is not None:  # written before this process acquired the lock
                        os.close(lock)
                        return {**found, "reused": True}
                    started = self._start({"mode": "node", "lock": lock}, lock)
                    os.close(lock)
                    if isinstance(started, Decision):
                        return started
                    worker = started
                elif self.folder.lock_age() > STUCK_SECONDS:
                    return self._fail_open(
                        "hung", f"a worker has been stuck for {self.folder.lock_age():.0f} s", None
                    )
            if time.monotonic() >= self.deadline:
                return self._out_of_budget(worker)
            time.sleep(_POLL)

    def _ask_own_worker(self, *, snapshot: bool = False) -> dict[str, Any] | Decision:
        """A verdict for this hook only: on its environment, or on its GPUs in the last snapshot."""
        name = f"own.{os.getpid()}.json"
        python = self.request.python or ""  # a name alone is looked up on PATH
        task: dict[str, Any] = {
            "mode": "judge" if snapshot else "full",
            "result": name,
            "gpus": list(self.selectors or ()),
            "expects_gpus": not has_job_environment(self.request),
            "wants_gpu": self.selectors != (),
            "scopes": list(self.request.scopes),
            "live": self.request.live,
            "python": _from_here(python) if "/" in python else self.request.python,
            "only_named": self.request.kind == "slurm-task-prolog",
            "config": _from_here(self.request.config),
        }
        if self.request.kind == "slurm-epilog":
            node, job = node_name(self.env), job_id(self.env)
            task["mode"] = "ended"
            task["ended"] = job_end.describe(self.env, self.folder, node, job)
            task["until"] = self.deadline - _JUDGE_SHARE * self.request.budget
        self.folder.sweep()
        worker = self._start(task, None)
        if isinstance(worker, Decision):
            return worker
        try:
            while True:
                found = self.folder.fresh(name, self._max_age, self.key)
                if found is not None:
                    return found
                status = worker.poll()
                if status is not None and not (self.folder.path / name).exists():
                    return self._worker_ended(worker, status)
                if time.monotonic() >= self.deadline:
                    worker.end(_LAST_SECONDS)  # no other hook can use its verdict
                    return self._out_of_budget(worker)
                time.sleep(_POLL)
        except SystemExit:  # a signal has ended this hook
            worker.end(_END_SECONDS)
            raise
        finally:
            for left in (self.folder.path / name, worker.output):
                with contextlib.suppress(OSError):
                    left.unlink()

    def _start(self, task: dict[str, Any], lock: int | None) -> Detached | Decision:
        task |= {"folder": str(self.folder.path), "key": self.key, "in_job": self.in_job}
        task["ignore"] = list(self.request.ignore)
        task["limits"] = self.request.limits
        output = self.folder.path / f"worker.{task['mode']}.log"
        if task["mode"] != "node":
            output = output.with_name(f"worker.{os.getpid()}.log")  # `RunFolder.sweep` removes it
        from dsdoctor import process  # noqa: PLC0415  # a reused verdict starts no process

        try:
            return process.start_detached(
                [sys.executable, "-I", "-m", "dsdoctor.hook.worker", json.dumps(task)],
                output=output,
                env=self.env,
                keep=() if lock is None else (lock,),
            )
        except OSError as error:
            return self._fail_open("spawn", f"no worker could be started: {error}", None)

    def _worker_ended(self, worker: Detached, status: int) -> Decision:
        """The decision if a worker ended without a verdict."""
        if status == _MISUSE and _last_words(worker.output):
            return self._fail_open("usage", _last_words(worker.output), None)
        return self._fail_open("crash", f"the worker ended with status {status}", worker)

    def _out_of_budget(self, worker: Detached | None) -> Decision:
        waits = _last_step(worker.output if worker else self.folder.path / "worker.node.log")
        allowed = (
            f"within {time.monotonic() - self.begun:.1f} s, as long as the budget of "
            f"{self.request.budget:g} s allows"
        )
        if "nvml" in waits:
            return self._fail_open(
                Observation.NVML_SLOW.value,
                f"NVML did not answer {allowed}; a driver that no process keeps open is "
                "initialized again each time; `nvidia-persistenced` or persistence mode "
                "(`nvidia-smi -pm 1`) keeps it loaded",
                None,
            )
        on = f" (it waits for {', '.join(waits)})" if waits else ""
        return self._fail_open("timeout", f"no verdict {allowed}{on}", None)

    def _fail_open(self, cause: str, detail: str, worker: Detached | None) -> Decision:
        if worker is not None:
            last = _last_words(worker.output)
            detail += f": {last}" if last else ""
        return unknown(
            cause, detail, fail_closed=self.request.fail_closed, dry_run=self.request.dry_run
        )


def is_in_job(cgroup: Path = Path("/proc/self/cgroup")) -> bool:
    """Whether this process runs in the cgroup of a job, where it may see that job's GPUs alone."""
    try:
        return proc_stat.slurm_job(cgroup.read_text(encoding="utf-8")) != ""
    except OSError:
        return False


def _last_step(output: Path) -> list[str]:
    """Probes that a worker waits for, by the steps in its output (`+name` begun, `-name` ended)."""
    open_steps: dict[str, None] = {}
    for line in _lines(output):
        if line.startswith("+"):
            open_steps[line[1:]] = None
        elif line.startswith("-"):
            open_steps.pop(line[1:], None)
    return list(open_steps)


def _last_words(output: Path) -> str:
    lines = [line for line in _lines(output) if line.strip() and line[0] not in "+-"]
    return lines[-1].strip()[:300] if lines else ""


def _lines(output: Path) -> list[str]:
    try:
        return output.read_text(encoding="utf-8", errors="replace").splitlines()[-200:]
    except OSError:
        return []


def _from_here(path: str | None) -> str | None:
    """An absolute path, for the worker, which runs in `/`."""
    return path and os.path.abspath(path)  # noqa: PTH100  # links stay as they are
