"""What tools report when they fail: installers, compilers, shells, containers, clusters.

Few shapes cover most of them, since command-line tools begin such a line with their name and the
word `error`, or end it with the words of an errno, and schedulers state an exit status. They count
at the end of a log only: a script that goes on after such a line has ignored it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.progress import LOADING, step_of

#: The words of errno with which tools end a line (glibc 2.17-2.41 string/strerror.c, musl, BSD),
#: and those of shells (bash 4-5 execute_cmd.c, dash, zsh).
ERRNO = (
    r"(?:No such (?:file or directory|process|device(?: or address)?)|[Pp]ermission denied"
    r"|Not a directory|Is a directory|Input/output error|No space left on device"
    r"|Connection (?:refused|timed out|reset by peer)|Broken pipe|Operation (?:not permitted"
    r"|timed out|not supported)|Read-only file system|Argument list too long|Exec format error"
    r"|Text file busy|Too many (?:open files|levels of symbolic links)|Cannot allocate memory"
    r"|Disk quota exceeded|Stale file handle|Host is down|No route to host"
    r"|Network is unreachable|Name or service not known|Could not resolve hostname \S+"
    r"|Temporary failure in name resolution|Device or resource busy|Invalid argument"
    r"|Resource temporarily unavailable|Transport endpoint is not connected"
    r"|(?:command )?not found)"
)
#: Tools that scripts call to tidy up; a job does not fail with them.
TIDY = r"(?!(?:\S*/)?(?:rm|rmdir|mkdir|unlink|umount|kill|pkill|killall|which|conda deactivate): )"
#: What BuildKit puts before the lines of a build: `#12 34.56 `, and `34.56 ` in its summary.
BUILD_HEAD = lazy(r"^(?:#\d{1,4} )?(?:\d{1,5}\.\d{1,3} )?")
#: Metrics have the word too: `Error: 0.03`, `errors: none`.
SAID = r"(?!(?i:none|no|nan|inf|ok|null|false|true|yes)\b)[A-Za-z`'\"(\[<{/~_]"


class Shape(NamedTuple):
    """A shape of such lines.

    Attributes:
        pattern: matches a line without prefixes.
        within: number of the last lines of a log in which it counts, whatever follows; 0: nothing
            but lines that belong to it may follow.
        where: where the reason is, with the groups of the pattern; "" if not known.
        said: how much it says of what failed: of several lines that which says most is quoted.
    """

    pattern: re.Pattern[str]
    within: int = 0
    where: str = ""
    said: int = 0


#: Lines at the end in which a tool's last statement counts, and a cluster's table or description.
FEW, MANY = 8, 40
#: A tool gave up: pip (22.1-25 exceptions.py: `error: some-reference`) and uv mark it by a cross.
GAVE_UP = lazy(
    r"^\s*error: [a-z]+(?:-[a-z]+){2,8}$|^\s*[\u00d7\u2717] \S"
    r"|^\s*ERROR: (?:Failed (?:building|to build)|Could not (?:build|find|install)|Cannot install"
    r"|No matching|Command errored out|Command \"|ResolutionImpossible|Exception:)"
    r"|^Failed to build \S|^Pip subprocess error:$"
    # GNU make 3.8-4.4, ninja 1.5-1.13, GCC 4-15, setuptools' distutils, CMake 3-4
    r"|^\s*g?make(?:\[\d{1,3}\])?: \*\*\* |^\s*ninja: (?:build stopped|error|fatal)\b"
    r"|^\s*collect2: (?:fatal )?error: |^\s*compilation terminated\.$|\binternal compiler error: "
    r"|^\s*error: command '.{1,300}' failed with exit (?:status|code) "
    r"|^-- Configuring incomplete, errors occurred!"
    # docker 1.0-28, BuildKit 0.8-0.24
    r"|^ERROR: failed to (?:solve|build): |^The command '.{1,4000}' returned a non-zero code: "
)
#: The level of a message, after the name of the tool or none.
LEVEL = lazy(
    TIDY + r"(?:^|^[\w./+-]{1,80}(?:\[\d{1,9}\])?(?: \[[\w-]{1,40}\])?: {1,2}|^CMake )"
    r"(?:(?:[Ff]atal )?[Ee]rror|FATAL(?: ERROR)?|[Ff]atal|ERROR|CRITICAL)(?:\[\w{1,12}\])?"
    r"(?: {0,4}\((?!s\b)[^()]{1,60}\)| (?:response|from|in|at|downloading|uploading|while|when"
    r"|during|processing|reading|loading|opening|executing|running|creating|building|parsing|connecting"
    r"|occurred|encountered|code)\b[^:]{0,80}(?::\d[^:]{0,80})?)?:(?: {1,4}" + SAID + r"|$)"
    # with the name before the word: `nvcc fatal   : `, `rsync error: `
    r"|^[a-z][\w.+-]{1,30} (?:fatal|error) {0,4}: {1,4}" + SAID +
    # apt 1.0-3.0, curl 7-8, wget 1.x, the AWS CLI 1-2, kubectl, GitHub's runner, Windows' cmd
    r"|^E: [A-Z]|^ERROR [A-Z][a-z]|^curl: \(\d{1,3}\) |^ERROR \d{3}: "
    r"|^(?:fatal error: )?An error occurred \("
    r"|^The connection to the server \S{1,300} was refused|^##\[error\]"
    r"|^'[^']{1,200}' is not recognized as an internal or external command"
    r"|The term '[^']{1,200}' is not recognized as "
    # the last line of a logger at its highest levels
    r"|^\[(?:ERROR|FATAL|CRITICAL)\] \S"
    r"|^(?:[\w./:-]{0,80} {0,8}[-|:] {0,8})?(?:ERROR|CRITICAL|FATAL)(?: {0,8}[-|:] {0,8}| +)"
    r"[\w./]{1,80}(?::[\w<>.]{1,80}){0,3}(?:\(\d{1,6}\))?(?::\d{1,6})? {0,8}[-|:]"
)
#: A shell states the script and the line; other tools end the line with an errno, or say what they
#: cannot do.
TOOL = lazy(
    r"^-?\S{1,300}: line \d{1,6}: (?!warning)\S"
    r"|^\S{1,200}: \d{1,6}: (?:\S{1,200}: (?:not found|Permission denied|unexpected operator"
    r"|parameter (?:null or )?not set)|Bad substitution|Syntax error: |Illegal "
    r"|(?:[\w.]+: )?can(?:no|')t )"
    r"|^zsh: (?:command not found|no such file or directory|permission denied|no matches found"
    r"|killed|segmentation fault|abort)"
    rf"|{TIDY}^-?[\w./+-]{{1,200}}: .{{0,300}}\b{ERRNO}\.?$"
    rf"|{TIDY}^[\w./+-]{{1,60}}: {{1,2}}(?:\S{{1,80}}: )?(?:cannot|can't|could not|unable to"
    r"|failed to|invalid|unrecognized|unknown option|illegal|missing operand|no such"
    r"|unexpected end of file|Unexpected EOF|Error is not recoverable"
    r"|connection unexpectedly closed|a password is required|sending signal \w{2,10} to command)\b"
)
#: A launcher, scheduler or service states the status with which what it started has ended.
STATUS = lazy(
    r"(?i)\bexit(?:ed|s)?(?:[ _-]with)?(?: an?)?(?: non-?zero)?(?: exit)?[ _-]?(?:code|status)"
    r"\W{1,5}(?:is |of |was )?(?:-?[1-9]\d{0,9}|0x(?!0{8})[0-9a-f]{8})\b.{0,80}$"
    r"|\bfailed with (?:error |exit )?(?:code|status) -?[1-9]"
    r"|\bnon-?zero (?:exit )?(?:code|status)\b"
    r"|\bstatus=[1-9]\d{0,3}/\w|\bFailed with result '|\btermination \(return value -?[1-9]"
    r"|\bterminated by signal \d|^Finished: (?:FAILURE|ABORTED|UNSTABLE)$"
    r"|\bdependency failed to start: |\bhave not registered within the timeout\b"
)
#: What kubectl shows of a pod whose container ends (kubernetes 1.8-1.34 pkg/kubelet,
#: pkg/printers/internalversion/printers.go). Those that never started have a condition.
POD = lazy(
    r"^(?:[a-z0-9.-]{1,63} +)?(?P<pod>[a-z0-9.-]{1,253}) +\d{1,3}/\d{1,3} +"
    r"(?:Init:)?(?:CrashLoopBackOff|Error|ContainerStatusUnknown|DeadlineExceeded|NodeLost"
    r"|NodeShutdown) +\d"
)
CONTAINER = lazy(
    r"^\s*(?:[-*] )?(?:Reason|reason): +\"?(?:CrashLoopBackOff|Error)\b"
    r"|\bBack-?off restarting failed container\b"
    r"|\bBackoffLimitExceeded\b|\breached the specified backoff limit\b"
)
SHAPES = (
    Shape(POD, MANY, "`kubectl logs --previous {pod}` shows what its container printed", 3),
    Shape(CONTAINER, MANY, "`kubectl logs --previous POD` shows what the container printed", 3),
    Shape(GAVE_UP, FEW, said=2),
    Shape(STATUS),
    Shape(LEVEL, said=1),
    Shape(TOOL, said=1),
)
#: Lines that belong to a report above them: its notes and reasons, a frame around it, a prompt, the
#: times of a job.
BELONGS = lazy(
    r"^\s|^[^\w\[({<\"'%]|^$"
    r"|^(?:[Nn]ote|[Hh]int|[Hh]elp|HINT|NOTE|[Uu]sage|usage|Caused by|[Ww]arning|WARNING)\b.{0,9}:"
    r"|^(?:See|For (?:more|further|bug)|Try|Check|Please|Perhaps|Did you|Run|Exiting|exit|logout"
    r"|Abort|real|user|sys|wandb:|slurmstepd:|operable program|failed$)"
    r"|^\[notice\]|^\S{1,80}[$#] ?$|^\d{1,9}\.\d{1,3}user "
    r"|^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w* |(?:[Ee]nd|[Jj]ob|[Ff]inish)\w*\b.{0,60}\d\d:\d\d)"
)


#: A line that reports a failure contains one of these, in small letters; most last lines of healthy
#: logs do not, so the patterns need not be compiled.
WORDS = (
    "error", "fail", "fatal", "***", "not found", "no such", "denied", "cannot", "can't",
    "unable", "could not", "invalid", "exit", "signal", "backoff", "back-off", "\u00d7", "\u2717",
    "refused", "timed out", ": line ", "not recognized", "syntax", "illegal", "missing",
    "unrecognized", "unknown", "resolve", "a directory", "status", "curl", "eof", "end of file",
    "busy", "stale", "too long", "password", "termin", "timeout", "aborted", "unstable",
    "critical", "substitution", "e: pack", "parameter", "exceeded", "nodelost", "nodeshutdown",
    "non-zero", "nonzero", "finished: ",
)  # fmt: skip


class Report(NamedTuple):
    """A line that reports a failure, and where the reason is ("" if not known)."""

    text: str
    where: str = ""


def report_in(lines: Sequence[str]) -> Report | None:
    """What the last lines of a log report, if the log ends with a failure.

    Args:
        lines: the last lines that are not blank, without prefixes.

    >>> report_in(["x.sh: line 3: torchrunn: command not found"]).text
    'x.sh: line 3: torchrunn: command not found'
    >>> report_in(["x.sh: line 3: nvtop: command not found", "loading", "done"])
    >>> report_in(["Error: 0.03"])
    """
    if not any(word in line.lower() for line in lines for word in WORDS):
        return None
    best: Report | None = None
    most = -1
    closing = True
    for behind, line in enumerate(reversed(lines)):
        if step_of(line) is not None and not LOADING.search(line):
            break
        text = BUILD_HEAD.sub("", line.rstrip())
        for shape in SHAPES:
            if (behind < shape.within or (closing and not shape.within)) and (
                found := shape.pattern.search(text)
            ):
                if shape.said > most:
                    best = Report(text.strip(), shape.where.format_map(found.groupdict()))
                    most = shape.said
                break
        else:
            closing = closing and BELONGS.search(text) is not None
    return best
