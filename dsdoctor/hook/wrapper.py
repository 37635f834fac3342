"""The POSIX shell script between a scheduler and `dsdoctor hook`.

A scheduler acts on any status but 0, and an interpreter has many ways to end with another: it is
missing (127), may not be run (126), is on a dead network disk, is killed, finds the disk full; and
a crash of Python is status 1, which means "faulty" in several protocols. The script passes a status
on only if the verdict file of the same run confirms it. As root it first makes sure that no other
account could have changed the interpreter or controls the run folder.

A shell may reap a child at any moment, after which the kernel may reuse its pid for a process of
another account. The script therefore signals no process by its pid. dsdoctor runs in its own
process group, and what ends it (a time limit, the end of the script) is part of that group and
signals pid 0, which means "my own group".

Over 400 lines because the script is one text that an administrator reads as a whole.
"""

from __future__ import annotations

import dataclasses
import shlex

from dsdoctor.hook import gatelog, limits, outputs
from dsdoctor.version import __version__

#: A comment in every file that `hook install` writes; `uninstall` removes no file without it.
MARK = "written by `dsdoctor hook install`"
#: How much longer than its budget a scheduler should wait for a script, on a busy machine.
PATIENCE_SECONDS = 2

_SCRIPT = r"""#!/bin/sh
# @MARK@ (dsdoctor @VERSION@); `dsdoctor hook uninstall` removes it
# Passes on a verdict of this very run, and nothing else. An interpreter that is missing, broken or
# not to be trusted, a crash, a hang, a full disk: status @ELSE@ and a line in syslog.
@FIRST@
user_path=${PATH-/usr/local/bin:/usr/bin:/bin}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 022
{ read -r begun _ </proc/uptime; } 2>/dev/null || begun=
spent=0 # hundredths of a second of its time that another script has used
@SECOND@job=@JOB@
# it goes into logs and into the token; under some schedulers the user of the job can set it
case $job in *[!]A-Za-z0-9._[-]*) job= ;; esac
node=${SLURMD_NODENAME-}
case $node in *[!]A-Za-z0-9._[-]*) node= ;; esac
stamp=
decision=pass
verdict_word=
cause=
condition=
would=
noted=
# whatever ends this script, also a shell that can no longer fork, ends it with this status
answer=@ELSE@
trap 'exit "$answer"' EXIT
# a log that has reached a limit on the size of files is not written, and ends nothing
trap '' XFSZ
run=
hundredths() { # of an uptime, into h; no leading zeros, which would make it octal
  h=${1%.*}${1#*.}
  h=${h#0}
  h=${h#0}
}
note() { # begin or end, its time, and further words: a line in the log of the gate
  @NOTE@
}
leave() { # status
  answer=$1
  took=0
  if { read -r up _ </proc/uptime; } 2>/dev/null && [ -n "$begun" ]; then
    hundredths "$begun"
    took=$h
    hundredths "$up"
    took=$((h - took))
  fi
  seconds=$((took / 100)).$((took / 10 % 10))$((took % 10))
  note end "$((${stamp:-0} + took / 100))" "decision=$decision" "verdict=$verdict_word" \
    "cause=$cause" "condition=$condition" "would=$would" "seconds=$seconds" "noted=$noted"
  exit "$1"
}
[ -e @DISABLED@ ] && { @SAY_OFF@; leave @OFF@; }
python=@PYTHON@
work=
line=
leash=
stopped=

# a signal to this script ends dsdoctor, which ends its own children; then the folder is removed
stop() { # name
  stopped=$1
  [ -n "$leash" ] && { echo stop >&9; } 2>/dev/null
}
trap 'stop TERM' TERM
trap 'stop INT' INT
trap 'stop HUP' HUP
stamp=$(date +%s 2>/dev/null)
# until there is a folder with a random name, which is part of the token of the verdict
token=$$-${job:-0}-$stamp
ended() { # process: gone, or a zombie
  kill -0 "$1" 2>/dev/null || return 0
  { read -r _ _ state _ <"/proc/$1/stat"; } 2>/dev/null && [ "$state" = Z ]
}

clean() {
  [ -n "$work" ] && rm -rf "$work" 2>/dev/null
}

# Each runs in a process group of its own and signals number 0, which means that group: a number in
# a variable may belong to a process of somebody else by now. Where neither setsid, perl nor this
# shell makes such a group, nothing is started that this script could not end.
setsid=$(command -v setsid 2>/dev/null)
if [ -z "$setsid" ] && setsid=$(command -v perl 2>/dev/null); then
  setsid="$setsid -e setpgrp;exec(@ARGV)"
fi
apart=$setsid
if [ -z "$setsid" ] && set -m 2>/dev/null; then # bash; dash and busybox do it on a terminal alone
  case $- in *m*) apart="set -m" ;; esac
  set +m
fi
# logger is waited for, since what is left behind dies with this script, but 0.5 s at most
tell='
read -r _ _ _ _ group _ </proc/self/stat
[ "$group" = "$$" ] || exit
{ sleep 0.5 || sleep 1; kill -KILL 0; } &
logger -t dsdoctor -p daemon.warning "$1"
kill -KILL 0
'
# dsdoctor is ended by a word on descriptor 3, or by the end of that file, which comes when this
# script is gone, however it ended; this shell can be killed while the kernel holds dsdoctor in
# state D
guard='
limit=$1 late=$2 path=$3 distrust=$4 judge=$5
shift 5
read -r _ _ _ _ group _ </proc/self/stat
[ "$group" = "$$" ] || exit 125
(
  if [ -n "$judge" ]; then
    eval "$judge"
    judge_interpreter "$1" >"$distrust" && [ ! -s "$distrust" ] || exit 124
  fi
  PATH=$path
  export PATH
  exec "$@"
) 3<&- &
child=$!
trap "" TERM
{
  read -r word
  left=10
  until [ "$word" = done ] || [ "$left" = 0 ]; do
    # repeated, since a process that has not called exec yet may lose a signal
    kill -TERM 0
    left=$((left - 1))
    sleep 0.1 || { sleep 1 && left=0; }
  done
  kill -KILL 0
} <&3 >/dev/null 2>&1 &
{ { sleep "$limit" || sleep "${limit%.*}"; } && : >"$late"; kill -KILL 0; } 3<&- >/dev/null 2>&1 &
wait "$child" 2>/dev/null
'
say() { # words: to syslog
  [ -n "$apart" ] || return 0
  [ -n "$setsid" ] || set -m
  $setsid /bin/sh -c "$tell" tell "$1" >/dev/null 2>&1 </dev/null 9>&- &
  [ -n "$setsid" ] || set +m
  wait $! 2>/dev/null
}

pass() { # cause, words
  @COUNT@
  decision=@ELSE_WORD@
  verdict_word=unknown
  cause=$1
  condition=
  would=
  say "hook=@KIND@ decision=@ELSE_WORD@ cause=$1 job=$job $2"
  clean
  @SAY_PASS@
  leave @ELSE@
}

# folders of scripts that were killed: their process is gone, or they are old and of another
# container
space=$(readlink /proc/self/ns/pid 2>/dev/null)
space=${space##*\[}
space=${space%]}
sweep() { # what the names begin with
  for old in "$1"*; do
    [ -d "$old" ] && [ ! -L "$old" ] && [ -O "$old" ] || continue
    owner=${old#"$1"}
    if [ "${owner%%.*}" = "$space" ]; then
      owner=${owner#*.}
      kill -0 "${owner%%.*}" 2>/dev/null || rm -rf "$old" 2>/dev/null
    elif [ -n "$(find "$old" -prune -mmin +60 2>/dev/null)" ]; then
      rm -rf "$old" 2>/dev/null
    fi
  done
}
judge=
@TRUST@
@FOLDER@
verdict=$work/verdict.json
said=$work/said
token=$$-${job:-0}-${work##*.}-$stamp
note begin "$stamp"

[ -z "$stopped" ] || pass stopped "this script was ended by SIG$stopped"
[ -n "$apart" ] || pass no-process-group "setsid (util-linux) is not installed"
mkfifo "$work/leash" 2>/dev/null || pass run-folder "$work cannot be written"
exec 9<>"$work/leash"
leash=1
# The interpreter may be on a disk that hangs, and so may what judges it: both have this limit,
# which leaves time for `logger` and for tidying within the budget. dsdoctor is told when it ends.
limit=@LIMIT@ # hundredths of a second since the first line
unset @ENDS@
if [ -n "$begun" ] && { read -r up _ </proc/uptime; } 2>/dev/null; then
  hundredths "$begun"
  used=$h
  hundredths "$up"
  limit=$((limit - (h - used) - spent))
  [ "$limit" -ge 10 ] || limit=10
  ends=$((h + limit))
  @ENDS@=$((ends / 100)).$((ends / 10 % 10))$((ends % 10))
  export @ENDS@
fi
limit=$((limit / 100)).$((limit / 10 % 10))$((limit % 10))
[ -n "$setsid" ] || set -m
$setsid /bin/sh -c "$guard" guard "$limit" "$work/late" @PATH@ "$work/distrust" "$judge" \
  "$python" -I -m dsdoctor \
  hook @KIND@ --json "$verdict" --token "$token" --run-folder "$run" @OPTIONS@ \
  3<"$work/leash" 9>&- >"$said" 2>&1 </dev/null &
child=$!
[ -n "$setsid" ] || set +m
[ -n "$stopped" ] || wait "$child" 2>/dev/null
status=$?
if [ -n "$stopped" ]; then
  # no `wait`, which bash does not always leave a second time
  left=20
  until ended "$child" || [ "$left" = 0 ]; do
    left=$((left - 1))
    sleep 0.1 2>/dev/null || { sleep 1 && left=0; }
  done
  pass stopped "this script was ended by SIG$stopped"
fi
echo done >&9
[ -e "$work/late" ] && pass wrapper-timeout "no answer within $limit s"
if [ "$status" = 124 ]; then
  bad=
  { IFS= read -r bad && IFS= read -r line; } <"$work/distrust" 2>/dev/null
  [ -n "$bad" ] || pass run-folder "$work cannot be written"
  pass untrusted-interpreter "root must not run $python: $bad is not root's alone ($line)"
fi

{ IFS= read -r line <"$verdict"; } 2>/dev/null
word() { # key: its word in the verdict
  value=${line#*\"$1\": \"}
  [ "$value" = "$line" ] && value=
  value=${value%%\"*}
  case $value in *[!a-zA-Z0-9_+-]*) value= ;; esac
}
word decision
decision=${value:-pass}
word verdict
verdict_word=$value
word cause
cause=$value
[ -n "$line" ] || cause=verdict-unwritten
word noted
noted=$value
word would
would=$value
[ "$decision" = block ] && word condition && condition=$value
# a verdict counts only together with the token of this run
case "$status $line" in
@CASES@
esac
@SAY_WORDS@
case $status in
  125) pass no-process-group "the interpreter could not be given a process group of its own" ;;
  126) pass not-executable "$python may not be run" ;;
  127) pass no-interpreter "$python does not exist" ;;
  @USAGE@) pass usage "dsdoctor did not understand its options" ;;
  @CODES@) pass no-verdict "status $status without a verdict of this run" ;;
esac
[ "$status" -gt 128 ] && pass signal "dsdoctor was ended by signal $((status - 128))"
pass "status-$status" "dsdoctor ended with status $status"
"""

#: For root: makes sure that only root controls the interpreter and the run folder.
_TRUST = r"""
if [ "$(id -u)" = 0 ]; then
  judge='
# in a user namespace, root of the host has another number
# shellcheck disable=SC2046  # columns of ls
top=$(set -- $(ls -ldn / 2>/dev/null); echo "${3:-0}")
# paths, and how deep: prints those that are not root alone. Others may create files in a sticky
# folder, which matters only in one that is given as DIR/.
not_roots() {
  find "$@" \( ! -user 0 ! -user "$top" @OWNERS@ -o ! -type l \( -perm -020 -o -perm -002 \) \
    ! \( -type d -perm -1000 ! -path "*/." \) \) -print 2>/dev/null ||
    echo "a path that find cannot judge"
}
untrusted() { # paths: prints what on the way to them is not root alone
  first=1
  for start in "$@"; do
    [ -z "$first" ] || { set --; first=; }
    case $start in */.) [ ! -e "$start" ] || set -- "$@" "$start" ;; esac
    start=${start%/.}
    real=
    [ -L "$start" ] && real=$(readlink -f "${start%/*}" 2>/dev/null)
    for path in "$start" "$(readlink -f "$start" 2>/dev/null)" "$real"; do
      while [ -n "$path" ]; do
        [ -e "$path" ] || [ -L "$path" ] && set -- "$@" "$path"
        path=${path%/*}
      done
    done
  done
  not_roots / "$@" -prune
}
report() { # output of the functions above: its first path, and whose that is
  [ -n "$1" ] || return 0
  bad=${1%%"
"*}
  # shellcheck disable=SC2046
  set -- $(ls -ldn "$bad" 2>/dev/null)
  printf "%s\nmode %s, uid %s\n" "$bad" "${1-?}" "${3-?}"
}
# A file that another account creates in a folder of packages would be imported. So would one in
# lib/python3x.zip, or in the library to which a new pyvenv.cfg points.
judge_interpreter() { # its path
  python=$1
  own=${python%/*/*}
  real=$(readlink -f "$python" 2>/dev/null)
  base=${real%/*/*}
  set --
  for place in "$own"/lib*/python3*/site-packages/. "$base"/lib*/python3*/site-packages/. \
    "$base"/lib*/python3*/lib-dynload/. "$base"/lib*/python3/dist-packages/.; do
    [ -e "$place" ] || continue
    set -- "$@" "$place"
    for list in "$place"/*.pth; do
      [ -f "$list" ] || continue
      while IFS= read -r added || [ -n "$added" ]; do
        added=${added%"${added##*[![:space:]]}"}
        [ -n "$added" ] || continue
        case $added in /*) ;; *) added=$place/$added ;; esac
        [ -d "$added" ] && set -- "$@" "$added/."
      done <"$list"
    done
  done
  found=$(untrusted "$python" "$@")
  [ -n "$found" ] || [ "$#" = 0 ] || found=$(not_roots "$@" -maxdepth 1)
  set --
  for place in "$own"/lib*/python3*/. "$base"/lib*/python3*/.; do
    [ -e "$place" ] && set -- "$@" "$place"
  done
  [ -n "$found" ] || [ "$#" = 0 ] || found=$(not_roots "$@" -maxdepth 1)
  set --
  for place in "$own/." "$base/." "${python%/*}/." "${real%/*}/." "$own"/lib*/. "$base"/lib*/. \
    "$own/pyvenv.cfg" "${python%/*}/pyvenv.cfg"; do
    [ -e "$place" ] && set -- "$@" "$place"
  done
  [ -n "$found" ] || found=$(not_roots "$@" -prune)
  report "$found"
}
'
  eval "$judge"
  found=$(report "$(untrusted @RUN@ @RUN@/.)")
  if [ -z "$found" ] && [ ! -d @RUN@ ]; then # another account could be faster in a sticky folder
    mkdir -p @RUN@ 2>/dev/null
    found=$(report "$(untrusted @RUN@ @RUN@/.)")
  fi
  [ -z "$found" ] || pass run-folder "run folder: ${found%%"
"*} is not root's alone (${found##*"
"})"
  run=@RUN@
fi
"""

#: The folder of a run: in root's run folder, or in /tmp if a user runs the hook.
_RUN_FOLDER = r"""
run=@RUN@
{ mkdir -p "$run" && [ -w "$run" ]; } 2>/dev/null || pass run-folder "$run cannot be written"
sweep "$run/run."
work=$(mktemp -d "$run/run.$space.$$.XXXXXX" 2>/dev/null) ||
  pass run-folder "$run cannot be written"
"""
_OWN_FOLDER = r"""
sweep "/tmp/dsdoctor.$(id -u)."
work=$(mktemp -d "/tmp/dsdoctor.$(id -u).$space.$$.XXXXXX" 2>/dev/null) ||
  pass run-folder "/tmp cannot be written"
run=$work
"""
#: Prints the output of dsdoctor. Grid Engine writes it into the output of the job.
_SHOW = '{ cat "$said"; } 2>/dev/null'
_COUNT = (
    '[ -z "$run" ] || { mkdir -p "$run/fail-open" && printf . >>"$run/fail-open/$1"; } 2>/dev/null'
)
#: A full disk, or a log that was made unwritable, changes no status.
_NOTE = (
    '[ -z "$run" ] || { event=$1 when=$2; shift 2; printf \'%s\\n\' "time=$when event=$event '
    'hook=@KIND@ node=$node job=$job run=$token $*" >>"$run/@LOG@"; }'
)
_THIS_RUN = r'*"\"token\": \"$token\""*'
#: For each kind: statuses, and the word in the verdict that confirms each.
_WORDS = {
    "pbs-prologue": {outputs.PBS_REQUEUE: ("decision", "block")},
    "k8s": {
        outputs.K8S_NODE_FAULT: ("decision", "block"),
        outputs.K8S_JOB_FAULT: ("decision", "block"),
    },
    "npd": {0: ("verdict", "healthy"), 1: ("verdict", "faulty"), 2: ("verdict", "unknown")},
    "nagios": {
        0: ("verdict", "healthy"),
        1: ("verdict", "healthy"),
        2: ("verdict", "faulty"),
        3: ("verdict", "unknown"),
    },
}
_BLOCKS = {1: ("decision", "block")}
#: Scheduler, as in the names of kinds, to the job's id; PBS passes it as the first argument.
_JOBS = {
    "pbs": "${PBS_JOBID:-${1-}}",
    "lsf": "${LSB_JOBID-}",
    "sge": "${JOB_ID-}",
}
#: What `pass` prints for a monitor if the verdict is inconclusive, with its arguments.
_MONITORS = {
    "npd": "dsdoctor: inconclusive ($1)",
    "nagios": "DSDOCTOR UNKNOWN - inconclusive ($1): $2",
}


@dataclasses.dataclass(frozen=True)
class Wrapper:
    """The parameters of a script.

    Attributes:
        kind: of the hook.
        python: interpreter of the environment in which dsdoctor is installed, an absolute path.
        options: further options of the hook.
        budget: seconds for the script in total.
        run_folder: of root; None = a new temporary one for each run (hooks that users run).
        fail_closed: an inconclusive check blocks.
        first: the first lines, before time is measured.
        second: lines after that; they may set `spent`, or end the script.
        trust: accounts that may own the interpreter besides root, by uid.
    """

    kind: str
    python: str
    options: tuple[str, ...] = ()
    budget: float = 5.0
    run_folder: str | None = "/run/dsdoctor"
    fail_closed: bool = False
    first: str = ""
    second: str = ""
    trust: tuple[int, ...] = ()

    @property
    def words(self) -> dict[int, tuple[str, str]]:
        """Statuses that may be passed on, with the word in the verdict that confirms each."""
        return _WORDS.get(self.kind, _BLOCKS)

    def _cases(self) -> str:
        rows = [
            f"""  "{status} "*'"{key}": "{word}"'{_THIS_RUN}) {_SHOW}; clean; leave {status} ;;"""
            for status, (key, word) in self.words.items()
        ]
        if 0 not in self.words:
            rows.insert(0, f"""  "0 "*) decision=pass; {_SHOW}; clean; leave 0 ;;""")
        return "\n".join(rows)

    def _else(self) -> int:
        """The status for an inconclusive verdict: that of a fault only with --fail-closed."""
        if self.kind in _MONITORS:
            return outputs.UNKNOWN_STATUS[self.kind]
        return min(self.words) if self.fail_closed else 0

    def render(self) -> str:
        """The script."""
        temporary = self.run_folder is None
        monitor = _MONITORS.get(self.kind)
        options = ["--budget", f"{self.budget:g}", *self.options]
        if self.fail_closed:
            options.append("--fail-closed")
        for owner in self.trust:
            options += ["--trust-owner", str(owner)]
        say = f'printf "%s\\n" "{monitor}"' if monitor else ":"
        values = {
            "TRUST": "" if temporary else _TRUST,
            "FOLDER": (_OWN_FOLDER if temporary else _RUN_FOLDER).strip("\n"),
            "COUNT": ":" if temporary else _COUNT,
            "NOTE": ":" if temporary else f"{{ {_NOTE}; }} 2>/dev/null",
            "LOG": gatelog.NAME,
            "ELSE_WORD": "block" if self.fail_closed and monitor is None else "pass",
            "CASES": self._cases(),
            "SAY_PASS": say,
            "SAY_OFF": say.replace("$1", "disabled").replace(": $2", ""),
            "SAY_WORDS": ":" if monitor or self.kind == "sge-prolog" else _SHOW,
            "USAGE": "none" if 2 in self.words else "2",  # noqa: PLR2004  # Nagios: CRITICAL
            "MARK": MARK,
            "VERSION": __version__,
            "ELSE": str(self._else()),
            "OFF": str(outputs.UNKNOWN_STATUS.get(self.kind, 0)),
            "FIRST": self.first or ":",
            "SECOND": f"{self.second}\n" if self.second else "",
            "DISABLED": "/etc/dsdoctor/disabled",
            "PYTHON": shlex.quote(self.python),
            "KIND": self.kind,
            "JOB": _JOBS.get(self.kind.partition("-")[0], "${SLURM_JOB_ID-}"),
            "PATH": '"$user_path"' if temporary else '"$PATH"',
            "OPTIONS": shlex.join(options),
            "LIMIT": str(round(100 * limits.given_up_after(self.budget))),
            "ENDS": limits.VARIABLE,
            "CODES": "|".join(str(code) for code in self.words if code) or "none",
            "OWNERS": " ".join(f"! -user {owner}" for owner in self.trust),
            "RUN": shlex.quote(str(self.run_folder)),
        }
        text = _SCRIPT
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        return text
