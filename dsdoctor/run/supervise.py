"""Starts a command, forwards its streams and signals, and watches it until it has ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from dsdoctor import files, process
from dsdoctor.errors import UsageError
from dsdoctor.model.run_record import Notice, PassedSignal, RankEnd, RunRecord
from dsdoctor.run import flight, gpus, hang, terminal
from dsdoctor.run.job_control import JobControl, take_foreground
from dsdoctor.run.keep import AFTER_STOP, OutputKeeper
from dsdoctor.run.line_printer import LinePrinter
from dsdoctor.run.metrics import write_metrics
from dsdoctor.run.notices import Notices, gpu_evidence
from dsdoctor.run.options import RunOptions
from dsdoctor.run.progress import Progress, Step
from dsdoctor.run.relay import Relay
from dsdoctor.run.watcher import Watcher

#: Signals that are forwarded to the job.
PASSED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
#: How long output may continue after the command has ended (a grandchild keeps the pipe open).
DRAIN_SECONDS = 1.0
#: How long a hung job may take to end itself before it is killed (`--on-hang stop`).
STOP_SECONDS = 30.0
#: How often a watcher that dies is restarted.
WATCHER_STARTS = 3
#: File for what NVML reported about GPUs at fault.
GPU_LOG = "gpus.log"


class Supervisor:
    """One start of a command, from its first to its last byte.

    Attributes:
        notices: what dsdoctor reported.
        progress: what the job has reported.
        ranks: rank to its process.
        hung: measures how long the job has been inactive.
        session: id of the session that the command is in.
    """

    def __init__(
        self, options: RunOptions, folder: Path, record: RunRecord, speak: LinePrinter
    ) -> None:
        self.options, self.folder, self.record, self._say = options, folder, record, speak
        self.notices = Notices()
        self.progress = Progress(self._on_step)
        self.ranks: dict[int, int] = {}
        self._gpu_lines: set[str] = set()
        self._seen = gpus.GpuChoice()
        self.hung = hang.HangClock()
        self.session = 0
        self._keeper = OutputKeeper(folder)
        self._begun = time.monotonic()
        self._begun_wall = time.time()
        self._job: process.Attached | None = None
        self._env: Mapping[str, str] = {}
        self._early: list[int] = []
        self._terminal: terminal.Terminal | None = None
        self._control: JobControl | None = None
        self._steps = os.fdopen(files.open_append(folder / "steps.jsonl"), "a", encoding="utf-8")
        self._kernel = os.fdopen(files.open_append(folder / "kernel.log"), "a", encoding="utf-8")

    def run(self, env: Mapping[str, str]) -> int:
        """Starts the command and returns its exit status (negative: signal).

        Raises:
            UsageError: the command cannot be started.
        """
        relay = self._say.relay = Relay(self._keep)
        wake, tell = os.pipe()
        for number in (wake, tell):
            os.set_blocking(number, False)
        relay.wake_on(wake)
        before = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
        handlers = self._pass_signals()
        self._begun, self._begun_wall = time.monotonic(), time.time()
        self._env = env
        try:
            self._start(env, relay)
            return self._watch(relay, wake, env)
        finally:
            if self._terminal is not None:
                self._terminal.release()
            elif self._job is not None:
                take_foreground(self._job.pid)
            signal.set_wakeup_fd(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            relay.close()
            os.close(wake)
            os.close(tell)
            self._keeper.close()
            for file in (self._steps, self._kernel):
                with contextlib.suppress(OSError):  # a full disk
                    file.close()
            self.record.output_bytes += self._keeper.total
            self.record.output_dropped += self._keeper.dropped
            self.record.seconds += time.monotonic() - self._begun

    def _start(self, env: Mapping[str, str], relay: Relay) -> None:
        stdin: int | None = None
        inner: int | None = None
        ends: list[int] = []
        streams: list[int] = []
        if terminal.is_wanted():
            self._terminal = terminal.Terminal()
            inner = self._terminal.inner
        for number in (1, 2):
            if inner is not None and os.isatty(number):
                streams.append(inner)
                continue
            outer, end = os.pipe()
            relay.add(outer, number)
            streams.append(end)
            ends.append(end)
        if self._terminal is not None and self._terminal.typed:
            stdin = self._terminal.inner
        foreground = 0 if self._terminal is None and terminal.is_foreground() else None
        try:
            self._job = process.start_attached(
                self.options.command,
                stdin=stdin,
                stdout=streams[0],
                stderr=streams[1],
                env=env,
                terminal=inner,
                foreground=foreground,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(
                f"`{self.options.command[0]}` cannot be started: {reason}; check the command "
                "after `--`"
            ) from None
        finally:
            for end in ends:
                os.close(end)
        self.session = os.getsid(0) if inner is None else self._job.pid
        self._control = JobControl(self._job, self._terminal, relay, self._on_key)
        for number in self._early:
            self._on_signal(number, None)
        self._control.begin()

    def _watch(self, relay: Relay, wake: int, env: Mapping[str, str]) -> int:
        job, control = self._job, self._control
        if job is None or control is None:
            raise UsageError("the command was not started")
        watcher: Watcher | None = None
        if not self.record.elsewhere:  # this host is not that of the job
            self._seen = gpus.choose(self.options.command, env)
            watcher = Watcher(job.pid, self.options, self.folder, self._seen)
            self._start_watcher(watcher, relay)
        due = time.monotonic() + self.options.every
        ended: float | None = None
        try:
            while True:
                woken = relay.copy(0.5 if ended is None else 0.05)
                if wake in woken:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                if watcher is None:
                    if time.monotonic() >= due:
                        due += self.options.every
                        self._take({"t": time.time()})
                elif watcher.out in woken:
                    self._sample(watcher, relay)
                control.look()
                status = job.poll()
                if status is not None:
                    ended = ended or time.monotonic()
                    if not relay.open or time.monotonic() > ended + DRAIN_SECONDS:
                        return status
        finally:
            if watcher is None:
                self._take({"t": time.time()})
            else:
                relay.forget(watcher.out)
                for sample in watcher.last_samples():
                    self._take(sample)
                watcher.close()

    def _start_watcher(self, watcher: Watcher, relay: Relay) -> None:
        try:
            watcher.start()
        except OSError as error:
            self._note("watcher", f"the job is not watched: {error.strerror or error}")
            return
        relay.wake_on(watcher.out)

    def _sample(self, watcher: Watcher, relay: Relay) -> None:
        samples = watcher.samples()
        if samples is None:
            relay.forget(watcher.out)
            if watcher.starts < WATCHER_STARTS:
                self._start_watcher(watcher, relay)
            else:
                watcher.close()
                self._note(
                    "watcher",
                    "the watcher process has died; the job continues, but is no longer watched",
                )
            return
        for sample in samples:
            self._take(sample)

    def _take(self, sample: Mapping[str, Any]) -> None:
        self.ranks = {row["rank"]: row["pid"] for row in sample.get("ranks") or ()} or self.ranks
        for end in sample.get("ended") or ():
            moment = float(end["t"]) - self._begun_wall
            self.record.rank_ends.append(
                RankEnd(
                    rank=end["rank"],
                    pid=end["pid"],
                    time=round(moment, 2),
                    status=end.get("status"),
                )
            )
        indices = {int(gpu["index"]) for gpu in sample.get("gpus") or ()}
        self.record.gpus = sorted(indices.union(self.record.gpus))
        if "gpus_others" in sample:  # NVML has answered: there is something to choose from
            unsure = bool(sample.get("gpus_unsure"))
            self.record.gpus_chosen_by = gpus.UNSURE if unsure else self._seen.why
        for line in sample.get("kernel") or ():
            _write_line(self._kernel, line)
        for line in gpu_evidence(sample):
            self._keep_gpu_line(line)
        for key, text in self.notices.feed(sample, self.progress):
            self._note(key, text)
        if self.options.metrics is not None:
            written = self.record.output_bytes + self._keeper.total
            write_metrics(self.options.metrics, sample, self.progress, self.record, written)
        suspended_until = 0.0 if self._control is None else self._control.resumed
        if float(sample["t"]) <= suspended_until:
            self.hung = hang.HangClock()
            return
        idle = self.hung.feed(sample, self._keeper.total)
        after = self.options.hang_after
        if not self._keeper.total:
            after = after and max(after, hang.STARTING_SECONDS)
        if after and idle > after and not self.record.hang:
            self._hang(sample, idle)

    def _keep_gpu_line(self, line: str) -> None:
        """Stores what NVML reports about a GPU at fault, once, as evidence for the diagnosis."""
        if line not in self._gpu_lines:
            self._gpu_lines.add(line)
            path = self.folder / GPU_LOG
            with contextlib.suppress(OSError):  # a full disk
                files.write(path, "\n".join(sorted(self._gpu_lines)) + "\n", mode=0o600)

    def _hang(self, sample: Mapping[str, Any], idle: float) -> None:
        ranks = {row["rank"]: row["pid"] for row in sample.get("ranks") or ()}
        ranks = ranks or {0: int(sample["job"]["python"])}  # one process, or ranks not yet started
        found = hang.stacks(self.folder / hang.FOLDER, ranks)
        seen = (hang.summary(found, len(ranks)), flight.missing(self._env, self.folder))
        where = "; ".join(filter(None, seen))
        end = f": {where}" if where else ""
        self.record.hang = f"no output and no work for {idle:.0f} s{end}"
        self._note("hang", self.record.hang)
        if not found and ranks:
            self._note("stacks", "install `py-spy` to see where the ranks wait")
        if self.options.on_hang == "stop" and self._job is not None:
            self._note(hang.STOP, "ending the job (`--on-hang stop`)")
            self._keeper.continue_as(AFTER_STOP)
            if not found and hasattr(signal, "SIGABRT"):
                for rank, pid in ranks.items():  # faulthandler prints the stacks of each rank
                    process.signal_one(pid, signal.SIGABRT, partial(process.is_rank, rank))
            self._job.signal_group(signal.SIGTERM)
            if self._job.wait(STOP_SECONDS) is None:
                self._job.signal_group(signal.SIGKILL)

    def _keep(self, data: bytes) -> None:
        self._keeper.add(data)
        self.progress.feed(data, time.monotonic() - self._begun)

    def _on_step(self, now: float, step: Step) -> None:
        row = {name: value for name, value in vars(step).items() if value is not None}
        _write_line(self._steps, json.dumps({"t": round(now, 3), **row}))

    def _note(self, key: str, text: str) -> None:
        moment = round(time.monotonic() - self._begun, 1)
        self.record.notices.append(Notice(time=moment, key=key, text=text))
        if not self.options.quiet:
            self._say(text)

    def _pass_signals(self) -> dict[int, Any]:
        before: dict[int, Any] = {}
        for name in PASSED:
            number = getattr(signal, name, None)
            # under `nohup` SIGHUP is ignored: the job inherits that
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, self._on_signal)
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._on_resize)
        before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        return before

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._job is None:  # between the start of the command and the message about it
            self._early.append(number)
            return
        self._note_signal(number, typed=False)
        self._job.signal_group(number)

    def _on_key(self, number: int) -> None:
        self._note_signal(number, typed=True)

    def _note_signal(self, number: int, *, typed: bool) -> None:
        moment = round(time.monotonic() - self._begun, 2)
        name = signal.Signals(number).name
        self.record.signals.append(PassedSignal(name=name, time=moment, typed=typed))

    def _on_resize(self, _number: int, _frame: object) -> None:
        if self._terminal is not None:
            self._terminal.resize()


def _write_line(file: TextIO, text: str) -> None:
    """Adds a line that can be read at once; a full disk must not stop the job."""
    with contextlib.suppress(OSError):
        file.write(text + "\n")
        file.flush()
