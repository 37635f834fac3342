"""The POSIX shell script that stands between a scheduler and `dsdoctor hook`.

A scheduler acts on any status but 0, and an interpreter has many ways to end with another: it is
gone (127), may not be run (126), lies on a dead network disk, is killed, finds the disk full. The
script lets a status pass on only if the verdict file of this very run bears it out.
"""

from __future__ import annotations

import dataclasses
import shlex

from dsdoctor.version import __version__

#: Stands in every file that we write, and is looked for before we remove one.
MARK = "written by `dsdoctor hook install`"
#: What the shell adds to the budget before it gives up on the interpreter itself.
GRACE_SECONDS = 2

_SCRIPT = r"""#!/bin/sh
# @MARK@ (dsdoctor @VERSION@); `dsdoctor hook uninstall` removes it
# Lets everything pass but a confirmed fault: status @CODES@ with a verdict file of this very run.
# A missing or broken interpreter, a crash, a hang, a full disk: status @ELSE@ and a line in syslog.
@FIRST@
user_path=${PATH-/usr/local/bin:/usr/bin:/bin}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
[ -e @DISABLED@ ] && exit 0
python=@PYTHON@
run=
line=
late=
child=
stopped=

# a signal to this script ends dsdoctor, which ends its own children, and what is left is cleaned up
stop() { # name
  stopped=$1
  [ -n "$child" ] && kill -TERM "$child" 2>/dev/null
}
trap 'stop TERM' TERM
trap 'stop INT' INT
trap 'stop HUP' HUP
# the shell gives up by itself: `wait` ends when a trapped signal comes, also when the child cannot
# be killed because the kernel holds it (state D)
trap 'late=1' USR1
ended() { # process: gone, or waiting to be buried
  kill -0 "$1" 2>/dev/null || return 0
  { read -r _ _ state _ <"/proc/$1/stat"; } 2>/dev/null && [ "$state" = Z ]
}
@FOLDER@

pass() { # cause, words
  { mkdir -p "$run/fail-open" && printf . >>"$run/fail-open/$1"; } 2>/dev/null
  logger -t dsdoctor -p daemon.warning "hook=@KIND@ cause=$1 job=${SLURM_JOB_ID-} $2" \
    >/dev/null 2>&1 </dev/null &
  @CLEANUP@
  exit @ELSE@
}

{ mkdir -p "$run" && [ -w "$run" ]; } 2>/dev/null || pass run-folder "$run cannot be written"
verdict=$run/verdict.$$.json
said=$run/said.$$
token=$$-${SLURM_JOB_ID-0}-$(date +%s 2>/dev/null)
rm -f "$verdict" "$said" 2>/dev/null

[ -z "$stopped" ] || pass stopped "this script was ended by SIG$stopped"
PATH=@PATH@ "$python" -I -m dsdoctor hook @KIND@ --json "$verdict" --token "$token" \
  --run-folder "$run" @OPTIONS@ >"$said" 2>&1 </dev/null &
child=$!
(
  trap 'kill -KILL $! 2>/dev/null; exit 0' TERM
  sleep @LIMIT@ &
  wait $!
  kill -USR1 $$
) >/dev/null 2>&1 </dev/null &
timer=$!
[ -n "$stopped" ] || wait "$child" 2>/dev/null
status=$?
if [ -n "$stopped" ]; then
  # told again, since a process that is not yet what it shall be loses a signal; no `wait`, which
  # bash does not always leave a second time
  left=10
  until ended "$child" && ended "$timer" || [ "$left" = 0 ]; do
    kill -TERM "$child" "$timer" 2>/dev/null
    left=$((left - 1))
    sleep 0.1 2>/dev/null || { sleep 1 && left=0; }
  done
  kill -KILL "$child" 2>/dev/null
  rm -f "$verdict" "$said" 2>/dev/null
  pass stopped "this script was ended by SIG$stopped"
fi
if [ -n "$late" ]; then
  kill -KILL "$child" 2>/dev/null
  rm -f "$verdict" "$said" 2>/dev/null
  pass wrapper-timeout "no answer within @LIMIT@ s"
fi
child=
kill "$timer" 2>/dev/null

{ IFS= read -r line <"$verdict"; } 2>/dev/null
{ cat "$said"; } 2>/dev/null
rm -f "$verdict" "$said" 2>/dev/null
[ "$status" = 0 ] && { @CLEANUP@; exit 0; }
case $status in
  @CASES@)
    case $line in
      *'"decision": "block"'*"\"token\": \"$token\""*) @CLEANUP@; exit "$status" ;;
    esac
    pass no-verdict "status $status without a verdict of this run" ;;
  126) pass not-executable "$python may not be run" ;;
  127) pass no-interpreter "$python is not there" ;;
  2) pass usage "dsdoctor did not understand its options" ;;
esac
[ "$status" -gt 128 ] && pass signal "dsdoctor was ended by signal $((status - 128))"
pass "status-$status" "dsdoctor ended with status $status"
"""


@dataclasses.dataclass(frozen=True)
class Wrapper:
    """What a script is made of.

    Attributes:
        kind: of the hook.
        python: interpreter that dsdoctor is installed in, an absolute path.
        options: further options of the hook.
        budget: seconds to a decision.
        run_folder: of root; None = a fresh temporary one for each run (hooks that users run).
        fail_closed: what cannot be told blocks.
        first: lines before all else.
    """

    kind: str
    python: str
    options: tuple[str, ...] = ()
    budget: float = 5.0
    run_folder: str | None = "/run/dsdoctor"
    fail_closed: bool = False
    first: str = ""

    @property
    def codes(self) -> tuple[int, ...]:
        """Statuses that may be passed on."""
        return (1, 4) if self.kind == "k8s" else (1,)

    def render(self) -> str:
        """The script."""
        temporary = self.run_folder is None
        folder = (
            "run=$(mktemp -d /tmp/dsdoctor.XXXXXX 2>/dev/null) || run=/dev/null/none"
            if temporary
            else f"run={shlex.quote(str(self.run_folder))}"
        )
        options = ["--budget", f"{self.budget:g}", *self.options]
        if self.fail_closed:
            options.append("--fail-closed")
        values = {
            "MARK": MARK,
            "VERSION": __version__,
            "CODES": " or ".join(str(code) for code in self.codes),
            "ELSE": "1" if self.fail_closed else "0",
            "FIRST": self.first or ":",
            "DISABLED": "/etc/dsdoctor/disabled",
            "PYTHON": shlex.quote(self.python),
            "FOLDER": folder,
            "KIND": self.kind,
            "CLEANUP": 'rm -rf "$run" 2>/dev/null' if temporary else ":",
            "PATH": '"$user_path"' if temporary else '"$PATH"',
            "OPTIONS": shlex.join(options),
            "LIMIT": f"{self.budget + GRACE_SECONDS:g}",
            "CASES": "|".join(str(code) for code in self.codes),
        }
        text = _SCRIPT
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        return text
