"""Polls launcher and ranks until there is a reason to stop."""

from __future__ import annotations

import time

from dsdoctor import process
from dsdoctor.model.smoke import PHASES
from dsdoctor.smoke import build_times, evidence
from dsdoctor.smoke.attempt import Attempt, OnProgress

#: Seconds between two polls of the ranks.
TICK = 0.1
#: Seconds between two polls of the ranks' shared memory.
SEGMENT_SECONDS = 0.5
#: Time for the launcher to notice and log the death of a rank. It polls once a second and gives the
#: other ranks time to end; a busy machine makes it slow.
NOTICE_SECONDS = 20.0
#: How long ranks may outlive the launcher before this counts as a crash of the launcher.
ORPHAN_SECONDS = 1.5


class Watch:
    """Polls until there is a reason to stop."""

    def __init__(self, made: Attempt, child: process.Child, on_progress: OnProgress) -> None:
        self.made, self.child, self.on_progress = made, child, on_progress
        self._build_times = build_times.last_builds()
        self.begun = time.monotonic()
        self.building = 0.0
        self.trouble: float | None = None
        self.gone: float | None = None
        self.finished: float | None = None
        self.looked = self.mapped = self.begun
        for progress in made.tracker.ranks:
            progress.since = self.begun

    def _look(self, now: float) -> None:
        tracker = self.made.tracker
        tracker.read(now)
        phase = self._report_place()
        if phase == "build-ops":
            self.building += now - self.looked
        self.looked = now
        if now - self.mapped >= SEGMENT_SECONDS:
            self.mapped = now
            self.note_segments()
        for progress in tracker.ranks:
            watched = progress.is_here and progress.died is None and not progress.done
            if watched and progress.pid and not evidence.is_alive(progress.pid):
                # its last lines may have arrived between the two polls
                tracker.read(now)
                if not progress.done:
                    tracker.note_death(progress, now)

    def note_segments(self) -> None:
        """Records the shared memory of the ranks, which outlives a rank that is killed."""
        ranks = self.made.tracker.ranks
        pids = [p.pid for p in ranks if p.pid and p.is_here and not p.done]
        self.made.segments |= evidence.segments_of(pids)

    def _report_place(self) -> str:
        """Reports where the slowest rank is; returns its phase."""
        slowest = min(
            (progress for progress in self.made.tracker.ranks if not progress.done),
            key=lambda progress: (PHASES.index(progress.phase), progress.step),
            default=None,
        )
        if slowest is None:
            self.on_progress("teardown", "", None)
            return "teardown"
        phase = slowest.phase
        if phase == "build-ops":
            ops = build_times.compiling(self.made.tracker.ranks, self._build_times)
            self.on_progress(phase, ops, None)
        elif phase == "steps":
            steps = self.made.plan.job["steps"]
            self.on_progress(phase, f"step {slowest.step} of {steps}", slowest.step / steps)
        else:
            self.on_progress(phase, "", None)
        return phase

    def reason(self) -> str | None:
        """Why to stop now; None to continue."""
        self.made.returncode = self.child.follow(TICK)
        now = time.monotonic()
        (self.made.folder / "alive").touch()
        self._look(now)
        tracker = self.made.tracker
        if self.made.returncode is not None:
            return self._after_launcher(now)
        failed = any(progress.failure for progress in tracker.ranks)
        died = any(progress.died is not None for progress in tracker.ranks)
        if failed or died:
            self.trouble = self.trouble or now
            if now > self.trouble + NOTICE_SECONDS:
                return "rank-failed" if failed else "rank-died"
            return None
        late = tracker.overdue(now)
        if late:
            self.made.overdue = tuple(progress.rank for progress in late)
            return "hang"
        if tracker.all_done:
            self.finished = self.finished or now
            return "hang" if now - self.finished > tracker.limit("teardown") else None
        if now - self.begun - self.building > self.made.timeout:
            self.made.overdue = tuple(p.rank for p in tracker.ranks if not p.done)
            return "timeout"
        return None

    def _after_launcher(self, now: float) -> str | None:
        """Why to stop after the launcher has ended; its status is no proof, the ranks decide."""
        tracker = self.made.tracker
        open_ranks = [progress for progress in tracker.ranks if not progress.done]
        if not open_ranks:
            return "ended"
        self.gone = self.gone or now
        if any(progress.failure for progress in tracker.ranks):
            return "rank-failed"
        if any(p.died is not None for p in open_ranks):
            # the launcher ended because a rank died; if it was killed, the ranks outlive it
            return "rank-died"
        alive = [p for p in open_ranks if p.pid and p.died is None]
        if alive and now < self.gone + ORPHAN_SECONDS:
            return None
        if alive:
            self.made.orphans = tuple(progress.rank for progress in alive)
            return "launcher-gone"
        if any(progress.events for progress in open_ranks):
            return "rank-died"
        return "not-started"
