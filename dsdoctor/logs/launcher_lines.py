"""What launchers report about their workers: failures and restarts."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy

#: torchrun's elastic agent, before it restarts the workers.
RESTART = "will restart worker group"
#: torchrun's elastic agent, about a failed worker; it reports a restart only at level INFO.
FAILED = "failed (exitcode:"
#: torchrun's elastic agent, at its end.
FIRST = "Root Cause (first observed failure)"
#: Lines of that report.
REPORT_LINES = 9
REPORT = lazy(
    r"\btime\s*: (?P<time>\S+)|\brank\s*: (?P<rank>\d{1,6})|\bexitcode\s*: (?P<code>-?\d{1,4})"
)
#: A launcher or srun reports that a process was ended by a signal ...
SIGNALLED = lazy(
    r"(?:exitcode\s*:|return code =) -\d|Signal \d+ \(SIG\w+\) received"
    r"|srun: error: .{0,80}tasks? [\d,-]+: (?!Exited)[A-Z]"
)
#: ... or that it exited with a status of its own.
EXITED = lazy(r"(?:exitcode\s*:|return code =|[Ee]xit code:?) (?P<code>[1-9]\d{0,2})\b")
#: DeepSpeed's launcher and torchrun report the process that died first on their node, of SIGKILL
#: or of SIGTERM, which they send themselves only after that.
KILLED = lazy(r"(?:exitcode\s*:|return code =) -9\b")
TERMINATED = lazy(r"(?:exitcode\s*:|return code =) -15\b")
