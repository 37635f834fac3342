"""What interactive shells, macOS and IDEs say of a process that a signal ended, in bash's words."""

from __future__ import annotations

import re

from dsdoctor.lazy_regex import lazy

#: The words of glibc, by those of zsh (5.0-5.9 Src/signals.c), fish (3-4 src/signal) and macOS
#: (10-15 libc strsignal, with the number).
WORDS = {
    "killed": "Killed",
    "segmentation fault": "Segmentation fault",
    "abort": "Aborted",
    "abort trap": "Aborted",
    "aborted": "Aborted",
    "illegal hardware instruction": "Illegal instruction",
    "illegal instruction": "Illegal instruction",
    "floating point exception": "Floating point exception",
    "trace trap": "Trace/breakpoint trap",
    "trace/bpt trap": "Trace/breakpoint trap",
    "trace/breakpoint trap": "Trace/breakpoint trap",
    "kill": "Killed",
    "segv": "Segmentation fault",
    "abrt": "Aborted",
    "ill": "Illegal instruction",
    "fpe": "Floating point exception",
    "trap": "Trace/breakpoint trap",
    "bus": "Bus error",
}
#: A job's state: zsh's message, the row of a job of zsh or bash (3.2-5.3 jobs.c), a word with its
#: number on macOS, and fish's sentence.
SAID = lazy(
    r"^(?:(?:zsh: |\[\d{1,4}\] {0,4}[+-]? {1,4}(?:\d{1,9} )?)"
    r"(?P<job>[Kk]illed|[Ss]egmentation fault|[Aa]bort(?:ed)?|illegal hardware instruction"
    r"|Illegal instruction|[Ff]loating point exception|trace trap|Trace/breakpoint trap)"
    r"(?=$| {2}| ?\(core dumped\))"
    r"|(?:\S{1,300}: line \d{1,6}: {1,4}\d{1,9} )?(?P<mac>Killed|Segmentation fault|Abort trap"
    r"|Illegal instruction|Floating point exception|Trace/BPT trap): \d{1,2}(?=$| {2})"
    r"|fish: .{1,400} terminated by signal SIG(?P<fish>KILL|SEGV|ABRT|ILL|FPE|TRAP|BUS) \()"
)
#: The job was a tunnel or a monitor beside the run.
BESIDE = lazy(
    r"(?: \(core dumped\))?\s{2,}(?:\S{1,100}/)?(?:(?:auto)?ssh|tail|watch|sleep|tensorboard"
    r"|nvidia-smi|nvtop|htop)\b"
)
#: bash says so of the signals other than SIGKILL, unless no core may be dumped.
DUMPS = " (core dumped)"


def said_by_bash(text: str) -> str:
    """The line in which another shell says that a signal ended a process, as bash says it.

    >>> said_by_bash("zsh: segmentation fault  python train.py")
    'Segmentation fault (core dumped)'
    >>> said_by_bash("[1]+  Killed                  python train.py")
    'Killed'
    >>> said_by_bash("fish: Job 1, 'python a.py' terminated by signal SIGILL (Illegal instruction)")
    'Illegal instruction (core dumped)'
    >>> said_by_bash("[1]+  Done                    python train.py")
    '[1]+  Done                    python train.py'
    >>> said_by_bash("[1]+  Killed                  ssh -N login")
    '[1]+  Killed                  ssh -N login'
    """
    found: re.Match[str] | None = SAID.match(text)
    if found is None or BESIDE.match(text, found.end()):
        return text
    word = WORDS[(found["job"] or found["mac"] or found["fish"]).lower()]
    return word if word == "Killed" else word + DUMPS
