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
from dsdoctor.logs.foreign import translated
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
TIDY = (
    r"(?!(?:\S{1,200}: line \d{1,6}: )?(?:\S{0,200}/)?"
    r"(?:rm|rmdir|mkdir|unlink|umount|kill|pkill|killall|which): )"
)
#: What BuildKit puts before the lines of a build: `#12 34.56 `, and `34.56 ` in its summary.
BUILD_HEAD = lazy(r"^(?:#\d{1,4} )?(?:\d{1,5}\.\d{1,3} )?")
#: Metrics have the word too: `Error: 0.03`, `errors: none`.
SAID = r"(?!(?i:none|no|nan|inf|ok|null|false|true|yes)\W{0,3}$)[A-Za-z`'\"(\[<{/~_]"


class Shape(NamedTuple):
    """A shape of such lines.

    Attributes:
        pattern: matches a line without prefixes.
        within: number of the last lines of a log in which it counts, whatever follows; 0: nothing
            but lines that belong to it may follow.
        where: where the reason is, with the groups of the pattern; "" if not known.
        said: how much it says of what failed: of several lines that which says most is quoted.
        unless: what a line of this shape must not contain; None: anything may.
    """

    pattern: re.Pattern[str]
    within: int = 0
    where: str = ""
    said: int = 0
    unless: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        """The match in a line; None if the line has another shape."""
        found = self.pattern.search(text)
        excused = found is not None and self.unless is not None and self.unless.search(text)
        return None if excused else found


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
    r"|^\s*error in \S{1,100} setup command: \S|^\s*-- Configuring incomplete, errors occurred!"
    # Snakemake 5-9, Nextflow 20-25, Airflow 1.10-3
    r"|\bExiting because a job execution failed\b|\bError executing process > '"
    r"|\bMarking task as (?:FAILED|UP_FOR_RETRY)\b"
    # docker 1.0-28, BuildKit 0.8-0.24
    r"|^ERROR: failed to (?:solve|build): |^The command '.{1,4000}' returned a non-zero code: "
    # Rust and Go programs (uv, ruff; docker, kubectl), Java, PowerShell 5-7, git 2.x
    r"|^thread '[^']{1,200}' (?:\(\d{1,9}\) )?panicked at |^panic: \S|^Exception in thread \""
    # R 3-4, Perl 5, PHP 7-8, Ruby 2-3, gfortran 4-15, Valgrind 3, the sanitizers of GCC and Clang
    r"|^Execution halted$|^BEGIN failed--compilation aborted\b|^PHP (?:Fatal|Parse) error: "
    r"|^\S{1,200}\.rb:\d{1,6}:in [`']|^Fortran runtime error: |^==\d{1,9}==ABORTING$"
    r"|^={2,9}(?:\d{1,9}==)? ERROR SUMMARY: [1-9]"
    # NativeCommandError: a program wrote to standard error, no more
    r"|^\s*\+ (?:CategoryInfo +: (?!NotSpecified: .{0,400}RemoteException)"
    r"|FullyQualifiedErrorId +: (?!NativeCommandError))|^git: '[^']{1,80}' is not a git command"
)
#: The level of a message, after the name of the tool or none.
LEVEL = lazy(
    TIDY + r"(?:^|^[\w./+-]{1,80}(?:\[\d{1,9}\])?(?: \[[\w-]{1,40}\])?: {1,2}|^CMake )"
    r"(?:(?:[Ff]atal )?[Ee]rror|FATAL(?: ERROR)?|[Ff]atal|ERROR|CRITICAL)(?:\[\w{1,12}\])?"
    r"(?: {0,4}\((?!s\b)[^()]{1,60}\)| (?:response|from|in|at|downloading|uploading|while|when"
    r"|during|processing|reading|loading|opening|executing|running|creating|building|parsing"
    r"|connecting|occurred|encountered|code)\b[^:]{0,80}(?::\d[^:]{0,80})?)?:(?: {1,4}"
    + SAID
    + r"|$)"
    # with the name before the word: `nvcc fatal   : `, `rsync error: `
    r"|^[a-z][\w.+-]{1,30} (?:fatal|error) {0,4}: {1,4}" + SAID +
    # apt 1.0-3.0, curl 7-8, wget 1.x, the AWS CLI 1-2, kubectl, GitHub's runner, Windows' cmd
    r"|^E: [A-Za-z]|^ERROR [A-Z][a-z]|^curl: \(\d{1,3}\) |^ERROR \d{3}: "
    r"|^(?:fatal error: )?An error occurred \("
    r"|^The connection to the server \S{1,300} was refused|^##\[error\]"
    r"|^'[^']{1,200}' is not recognized as an internal or external command"
    r"|The term '[^']{1,200}' is not recognized as "
    # the last line of a logger at its highest levels
    r"|^\[(?:ERROR|FATAL|CRITICAL|error)\] \S|^[\d:., TZ+-]{8,40} \| (?:ERROR|CRITICAL) {1,8}\| "
    r"|^(?:ERROR|FATAL) ~ |^(?:error|critical) {1,6}\w{2,40} [A-Z]"
    # MSVC and MSBuild, assemblers, absl's flags
    r"|(?:^|[ :)])(?:fatal )?error [A-Z]{1,5}\d{3,5}: |^\{standard input\}: Error: "
    r"|^FATAL Flags parsing error: |^[A-Z]\w{3,60}(?:NotFound|Timeout|Failure): \S"
    r"|^(?:[\w./:-]{0,80} {0,8}[-|:] {0,8})?(?:ERROR|CRITICAL|FATAL)(?: {0,8}[-|:] {0,8}| +)"
    r"[\w./]{1,80}(?::[\w<>.]{1,80}){0,3}(?:\(\d{1,6}\))?(?::\d{1,6})? {0,8}[-|:]"
    r"(?! {0,4}[\d.]{1,12}%?$)"
)
#: The level within a line of a logger: Python's `logging` with dashes, rich, the loggers of Go
#: programs (`key=value` and JSON), glog and klog.
LOGGED = lazy(
    r"^(?:\d[\d:/., TZ+-]{6,38} )?- (?:[\w.:/-]{1,80} - ){0,2}(?:ERROR|CRITICAL|FATAL) - (?!\d)\S"
    r"|^\[\d\d:\d\d:\d\d\] (?:ERROR|CRITICAL) {2,8}\S|\blevel=\"?(?:error|fatal|panic|critical)\b"
    r"|^\{.{0,300}\"(?:level|severity|levelname)\": ?\"(?i:error|fatal|critical|panic)\""
    r"|^\{\"error\": ?\{|^E\d{4} \d\d:\d\d:\d\d\.\d{1,9} +\d{1,9} \S{1,200}:\d{1,7}\] "
)
#: What npm (2-11 lib/utils) prints first; all that follows has its name too.
NPM = lazy(r"^npm (?:ERR!|error) (?:code \S|Lifecycle script `)")
#: A shell states the script and the line.
SHELL = lazy(
    r"^-?\S{1,300}: line \d{1,6}: (?!warning|(?:kill|rm|rmdir|mkdir|umount|pkill): )\S"
    r"|^\S{1,200}: \d{1,6}: (?:\S{1,200}: (?:not found|Permission denied|unexpected operator"
    r"|parameter (?:null or )?not set)|Bad substitution|Syntax error: |Illegal "
    r"|(?:[\w.]+: )?can(?:no|')t )"
    r"|: unbound variable$|: not found\.?$|^fish: Unknown command|^timeout: sending signal "
    r"|^zsh: (?:command not found|no such file or directory|permission denied|no matches found"
    r"|killed|segmentation fault|abort|illegal hardware|floating point|trace trap|terminated"
    r"|hangup)"
    r"|^\[\d{1,4}\] {0,4}[+-]? {1,4}(?:\d{1,9} )?(?:(?:[Ee]xit|Exit) [1-9]\d{0,2}|[Tt]erminated"
    r"|[Hh]angup|[Aa]bort(?:ed)?)(?=$| {2})"
    r"|^fish: .{1,400} terminated by signal SIG|^(?:Aborted|Hangup|Terminated)(?:: \d{1,2})?$"
    r"|^Connection to \S{1,200} closed by remote host\.$"
    r"|^The system cannot find the \w{4,6} specified\.?$|^Access is denied\.$"
)
#: A tool ends its line with the words of an errno ...
ENDS_WITH_ERRNO = lazy(rf"{TIDY}^-?[\w./+-]{{1,200}}: .{{0,300}}\b{ERRNO}\.?$")
#: ... or says what it could not do.
UNABLE = lazy(
    TIDY + r"^[\w./+-]{1,60}: {1,2}(?:\S{1,80}: )?(?:cannot|can't|could not|unable to|failed to"
    r"|invalid|unrecognized|unknown option|illegal|missing operand|no such"
    r"|unexpected end of file|Unexpected EOF|Error is not recoverable|access denied"
    r"|connection unexpectedly closed|a password is required)\b"
)
#: The same without its name. transformers (4.0-5.23 trainer.py) only warns of what it cannot
#: estimate, and OpenTelemetry (1.12-1.36 exporter/otlp) of traces that its collector refused.
SENTENCE = lazy(
    r"^(?:Could not (?!estimate)|Couldn't |Cannot |Can't |Unable to "
    r"|Failed to (?!export (?:(?:span|logs|metrics) )?batch code: "
    r"|export (?:traces|logs|metrics)\b.{0,200}, error code: ))\w"
    r"|^(?:unknown|invalid|unrecognized|no such) (?:\w{1,20} )?(?:flag|option|command|argument)\b"
    r"|^The \w{1,40}(?: \w{1,40})? (?:has )?failed to (?:start|launch|initialize|connect|open)\b"
    r"|^(?:download|upload|copy) failed: \S|\bAn error occurred \(\w{1,60}\) when calling "
    r"|^(?!0 )\d{1,6} errors? (?:detected|generated|found)\b"
    r"|\bundefined reference to (?:symbol )?[`'\"]|\binvalid compose project$"
    r"|^Exiting (?:because|due to|with error)\b"
)
#: How such a line says that its program goes on without that: `…, using torch instead`.
GOES_ON = lazy(
    r"(?i)[,;:.(-] {0,3}(?:so |now |will |and )?(?!exiting|aborting|stopping|quitting|missing"
    r"|according|during)[a-z]{2,20}ing\b|\b(?:instead|ignored?|skip(?:ped)?|fall(?:s|ing)? ?back"
    r"|defaults?|continu(?:e|es|ing)|from scratch|warning)\b"
)
#: How test runners and linters end if something failed: pytest 6-9 and pytest-cov, unittest, tox 4,
#: ctest 3-4, GoogleTest 1.8-1.17, `go test`, cargo, Jest, Vitest, Mocha and Playwright, RSpec,
#: PHPUnit, Maven, Gradle, Bazel; mypy, ruff, flake8, tsc, ESLint and pre-commit.
FAILED_TEST = lazy(
    r"^(?:FAILED|ERROR) [^\s:]{1,300}\.py(?:::\S{1,300})?(?: - .{1,1000})?$"
    r"|^\[  FAILED  \] [\w/.]{1,300}\b(?! test)|^--- FAIL: \S|^FAIL\t\S"
    r"|^[\w .()/-]{1,100}\.{3,}Failed$|^//\S{1,300} +FAILED\b"
)
TESTS = lazy(
    r"^(?:=+ )?(?:\d{1,7} \w{1,20}, ){0,8}[1-9]\d{0,6} (?:failed|errors?)\b"
    r"(?:, \d{1,7} \w{1,20}){0,8} in \d[\d.:]{0,12}s\b"
    r"|^FAILED \((?:failures|errors|unexpected successes)=[1-9]|^Errors while running CTest$"
    r"|^ ?[1-9]\d{0,6} FAILED TESTS?$|^FAIL$|^test result: FAILED\.|^=+ no tests ran in \d"
    r"|^ {2}[1-9]\d{0,6} fail(?:ing|ed)$|^ {2}\S{1,60}: FAIL code [1-9]"
    r"|^FAIL Required test coverage |^\d{1,7} examples?, [1-9]\d{0,6} failures?\b|^FAILURES!$"
    r"|^(?:\[ERROR\] )?Tests(?: run)?: \d{1,7}, .{0,80}\b(?:Failures|Errors): [1-9]"
    r"|^ {0,4}(?:Test Suites|Test Files|Tests):? +(?:\d{1,7} \w{1,20}, )?[1-9]\d{0,6} failed\b"
    r"|^(?:\[INFO\] )?BUILD FAIL(?:URE\b|ED in )|^FAILURE: Build failed with"
    r"|^FAILED: Build did NOT complete"
    r"|^Found [1-9]\d{0,6} errors?(?:\.$| in (?:\d{1,6} files?\b|\S{1,300}$))"
)
#: What Ansible (2.0-2.19) counts for a host that failed, HTCondor (8-24 condor_utils) writes of a
#: job that it holds, and a server of notebooks (jupyter_client 6-8 restarter.py; Jupyter, Colab,
#: Databricks and VS Code) says of a kernel that died.
HOST = lazy(r"^\S{1,200} +: ok=\d{1,6} .*\b(?:unreachable|failed)=[1-9]")
HELD = lazy(r"^\d{3} \(\d{1,9}(?:\.\d{1,6}){2}\) .{1,60} Job was held\.$")
KERNEL = lazy(
    r"KernelRestarter: restart(?:ing kernel| failed)"
    r"|^The kernel (?:for \S{1,200} )?appears to have died\b"
    r"|^Your session crashed for an unknown reason\b|^Your runtime has been disconnected\b"
    r"|^Failed to start the Kernel\b|\bspark driver has stopped unexpectedly\b"
    r"|^(?:The )?[Kk]ernel [Cc]rashed while executing code\b"
    r"|^Canceled future for execute_request message before replies were done"
)
#: A row of what `dcgmi diag` (DCGM 2-4 dcgmi/Diag.cpp) found.
DIAGNOSTIC = lazy(r"^\|[\w ()/-]{1,40} \| Fail(?: - |\s*\|)")
#: The same in a logger's line, in which a dash or a colon only separates its parts.
LOGS_ON = lazy(
    r"(?i)[,;(] {0,3}(?:so |now |will |and )?[a-z]{2,20}ing\b|\b(?:instead|ignored?|skip(?:ped)?"
    r"|fall(?:s|ing)? ?back|defaults?|continu(?:e|es|ing)|retry(?:ing)?|warning)\b"
)
#: A launcher, scheduler or service states the status with which what it started has ended.
STATUS = lazy(
    r"(?i)\bexit(?:ed|s)?(?:[ _-]with)?(?: an?)?(?: non-?zero)?(?: exit)?[ _-]?"
    r"(?:(?:status )?code|status)\W{1,5}(?:is |of |was )?(?:-?[1-9]\d{0,9}|0x(?!0{8})[0-9a-f]{8})"
    r"\b.{0,80}$"
    r"|\bfailed with (?:error |exit )?(?:code|status) -?[1-9]"
    r"|\bnon-?zero (?:exit )?(?:code|status)\b"
    r"|\bstatus=[1-9]\d{0,3}/\w|\bFailed with result '|\btermination \(return value -?[1-9]"
    r"|\b(?:terminated by|exited with) signal \d|^Set the environment variable HYDRA_FULL_ERROR=1"
    r"|^Finished: (?:FAILURE|ABORTED|UNSTABLE)$|^Build step '.{1,80}' marked build as failure$"
    r"|\bentered FATAL state\b|\bdependency failed to start: "
    r"|\bSubmitted job triggered an exception$"  # submitit 1.0-1.5 core/submission.py
    r"|\bhave not registered within the timeout\b"
)
#: The same of a shell's job (bash 3.2-5.3, zsh 5.0-5.9), if it is a run, and of Travis CI's.
JOB_ENDED = lazy(
    r"(?i)^The command \"[^\"]{1,300}\" (?:failed and )?exited with [1-9]"
    r"|^(?:returncode|return code|rc)\W{1,3}-?[1-9]\d{0,9}$|^zsh: exit [1-9]"
    r"|^\[\d{1,4}\] *[+-]? +(?:(?:\d{1,9} )?exit +[1-9]\d{0,2}|Done\([1-9]\d{0,2}\)"
    r"|(?:\d{1,9} )?terminated) +(?:nohup )?\S{0,200}"
    r"(?:python|torchrun|deepspeed|accelerate|mpirun|srun|\.sh)\b"
)
#: What kubectl shows of a pod whose container ends (kubernetes 1.8-1.34 pkg/kubelet,
#: pkg/printers/internalversion/printers.go). Those that never started have a condition.
POD = lazy(
    r"^(?:[a-z0-9.-]{1,63} +)?(?P<pod>[a-z0-9.-]{1,253}) +\d{1,3}/\d{1,3} +"
    r"(?:Init:)?(?:CrashLoopBackOff|Error|ContainerStatusUnknown|DeadlineExceeded|NodeLost"
    r"|NodeShutdown) +\d"
)
CONTAINER = lazy(
    r"^\s*(?:[-*] )?(?:Reason|reason): +\"?(?:CrashLoopBackOff|Error|\w{0,20}JobFailed)\b"
    r"|\b[Bb]ack-?off (?:\w{1,12} )?restarting failed container\b"
    r"|\bBackoffLimitExceeded\b|\breached the specified backoff limit\b"
)
#: The same of a pod that has waited for minutes to be scheduled, or for hours to be started.
WAITING = lazy(
    r"^(?:[a-z0-9.-]{1,63} +)?(?P<pod>[a-z0-9.-]{1,253}) +0/\d{1,3} +(?:Pending +\d{1,6} +"
    r"(?:\d{1,5}[smhd]){0,3}\d{1,5}[mhd](?:\d{1,5}s)?|(?:ContainerCreating|PodInitializing"
    r"|Init:\d{1,3}/\d{1,3}) +\d{1,6} +(?:\d{1,5}[hd]){1,2}(?:\d{1,5}[mh])?)(?: |$)"
)
#: The same of a job of Kubernetes, and what Slurm (20.02-25.05 sacct, scontrol) shows of one.
JOB = lazy(r"^(?:[a-z0-9.-]{1,63} +)?(?P<job>[a-z0-9.-]{1,253}) +Failed +\d{1,6}/\d{1,6} ")
SLURM_JOB = lazy(
    r"^(?P<job>\d{1,10})(?:[._+]\w{1,20})*[\s|].*[\s|](?:FAILED|BOOT_FAIL)[\s|]+\d{1,3}:\d{1,3}\b"
    r"|\bJobState=(?:FAILED|BOOT_FAIL)\b"
)
#: What squeue shows of a job that does not start until somebody changes something
#: (20.02-25.05 src/common/job_state_reason.c); others wait for their turn.
HELD_JOB = lazy(
    r"^\s*(?P<job>\d{1,10})\S{0,40} .* PD +0:00 .*\((?:launch failed requeued held|JobHeld\w{1,10}"
    r"|job requeued in held state|DependencyNeverSatisfied|Partition\w{1,20}Limit|BadConstraints"
    r"|InvalidQOS|InvalidAccount|Q[Oo]SMax\w{1,30}(?:PerJob|PerNode)\w{0,10}"
    r"|AssocMax\w{1,30}PerJob\w{0,10})\)$"
)
SHAPES = (
    Shape(POD, MANY, "`kubectl logs --previous {pod}` shows what its container printed", 3),
    Shape(CONTAINER, MANY, "`kubectl logs --previous POD` shows what the container printed", 3),
    Shape(JOB, MANY, "`kubectl describe job {job}` and the logs of its pods show why", 3),
    Shape(SLURM_JOB, MANY, "the job's own log shows why", 3),
    Shape(WAITING, FEW, "`kubectl describe pod {pod}` shows what it waits for", 3),
    Shape(HELD_JOB, FEW, "`scontrol show job {job}` shows what it asks for", 3),
    Shape(HOST, FEW, "the lines of its failed task, further up, show why", 3),
    Shape(HELD, FEW, "the lines below it show why", 3),
    Shape(DIAGNOSTIC, MANY, "the rows below it show what the test found", 3),
    Shape(KERNEL, FEW, "`dmesg` on its machine shows whether memory had run out", 3),
    Shape(FAILED_TEST, FEW, said=3),
    Shape(TESTS, FEW, said=2),
    Shape(GAVE_UP, FEW, said=2),
    Shape(STATUS),
    Shape(JOB_ENDED),
    Shape(NPM, said=2),
    Shape(LEVEL, said=1),
    Shape(LOGGED, said=1, unless=LOGS_ON),
    Shape(SHELL, said=1),
    Shape(ENDS_WITH_ERRNO, said=1),
    Shape(UNABLE, said=1, unless=GOES_ON),
    Shape(SENTENCE, said=1, unless=GOES_ON),
)
#: A row of `ds_report` (DeepSpeed 0.3-0.19 env_report.py): the linker above it only tried whether
#: the library of that op is there.
OF_DS_REPORT = lazy(r"^\s*[a-z]\w{1,40} \.{2,40} (?:\x1b\[\d{1,2}m)?\[(?:NO|YES)\]")
#: Lines that belong to a report above them: its notes and reasons, a frame around it, a prompt, the
#: times of a job.
BELONGS = lazy(
    r"^\s|^(?!- (?:[\w.:/-]{1,80} - ){0,2}(?:INFO|DEBUG|WARN))[^\w\[({<\"'%]|^$"
    r"|^[A-Z][\w ]{0,30}:$|^\((?:try|use|see|run)\b"
    r"|^(?:Code|Message|Details|Reason|Output|Stderr|Stdout|Command): "
    r"|^(?:[Nn]ote|[Hh]int|[Hh]elp|HINT|NOTE|[Uu]sage|usage|Caused by|[Ww]arning|WARNING)\b.{0,9}:"
    r"|^(?:See|For (?:more|further|bug)|Try|Check|Please|Perhaps|Did you|Run|Exiting|exit|logout"
    r"|Connection to \S{1,200} closed\.$"
    r"|npm |info Visit |Complete log: |Calls: |Execution halted$|Node\.js v\d|SUMMARY: "
    r"|More|Pass|Abort|real|user|sys|wandb:|slurmstepd:|operable program|failed$)"
    r"|^\[notice\]|^\S{1,80}[$#] ?$|^\d{1,9}\.\d{1,3}user "
    r"|^(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w* |(?:[Ee]nd|[Jj]ob|[Ff]inish)\w*\b.{0,60}\d\d:\d\d)"
)


#: A line that reports a failure contains one of these, in small letters; most last lines of healthy
#: logs do not, so the patterns need not be compiled.
WORDS = (
    "error", "fail", "fatal", "***", "not found", "no such", "cannot", "can't", "unable",
    "could not", "invalid", "exit", "signal", "backoff", "back-off", "\u00d7", "\u2717",
    "refused", "timed out", ": line ", "not recognized", "syntax", "illegal", "missing",
    "unrecognized", "unknown", "resolve", "a directory", "status", "curl", "eof", "end of file",
    "busy", "stale", "too long", "password", "termin", "timeout", "aborted", "unstable",
    "critical", "substitution", "parameter", "exceeded", "nodelost", "nodeshutdown", "non-zero",
    "nonzero", "finished: ", "panic", "undefined", "unbound", "notfound", "couldn't", "occurred",
    "commandnotfound", "not a git", "denied", "pending", "containercreating", "init:",
    "podinitializing", "was held", "held)", "jobheld", "kernelrestarter", "appears to have died",
    "kernel crashed", "halted", "abort", "no tests ran", "npm ", "(partition", "dependencynever",
    "badconstraints", "(qos", "(assoc", "zsh: ", "hangup", "closed by remote", "canceled future",
    "session crashed", "been disconnected", "up_for_retry", "stopped unexpectedly", "returncode",
    "return code", "rc=", "rc:", "done(",
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
    lines = [line if line.isascii() else translated(line) for line in lines]
    if not any(line.startswith("E: ") or word in line.lower() for line in lines for word in WORDS):
        return None
    best: Report | None = None
    most = -1
    closing = True
    for behind, line in enumerate(reversed(lines)):
        if step_of(line) is not None and not LOADING.search(line):
            break
        if OF_DS_REPORT.match(line):
            break
        text = BUILD_HEAD.sub("", line.rstrip())
        for shape in SHAPES:
            if (behind < shape.within or (closing and not shape.within)) and (
                found := shape.search(text)
            ):
                if _is_shown_again(found, lines[len(lines) - behind :]):
                    break
                if shape.said > most:
                    best = Report(text.strip(), shape.where.format_map(found.groupdict()))
                    most = shape.said
                break
        else:
            closing = closing and BELONGS.search(text) is not None
    return best


def _is_shown_again(found: re.Match[str], later: Sequence[str]) -> bool:
    """Whether later lines show another state of the same pod."""
    pod = found.groupdict().get("pod")
    return pod is not None and any(re.search(rf"\b{re.escape(pod)} +\d", line) for line in later)
