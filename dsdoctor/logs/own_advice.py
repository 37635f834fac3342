"""What to change in a script whose own error has a known remedy.

No condition of the environment is at fault: its parser refused an option of the launcher, or it
starts processes that start it again.
"""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import Error
from dsdoctor.model.diagnosis import Explained

#: python 3.6-3.14 Lib/argparse.py; what deepspeed 0.9-0.19 launcher/launch.py and torch 1.9-2.15
#: distributed/launch.py pass on, with `=`; users rarely write a number so.
_LOCAL_RANK = lazy(
    r"unrecognized arguments: (?:\S.{0,400} )?--(?P<option>local[-_]rank)=\d{1,4}(?: |$)"
)
#: Options of torch 1.9-2.15 distributed/run.py that no script has.
_OF_TORCHRUN = lazy(
    r"unrecognized arguments: (?:\S.{0,400} )?"
    r"--(?P<option>nproc[-_]per[-_]node|rdzv[-_](?:backend|endpoint|id))(?:[ =]|$)"
)


#: python 3.4-3.14 Lib/multiprocessing/spawn.py.
WHILE_IMPORTED = "An attempt has been made to start a new process before the"


def advice_for(error: Error) -> Explained | None:
    """What to change for an error of the script's own; None if that is not known."""
    if error.message.lstrip().startswith(WHILE_IMPORTED):
        text = (
            'Put what the script runs under `if __name__ == "__main__":`, as each process that it'
            " starts imports it first"
        )
        return Explained(kind="refusal", product="python", text=text)
    return _passed_option(error)


def _passed_option(error: Error) -> Explained | None:
    """What to change if a script's parser refused an option of its launcher; None otherwise."""
    if error.type != "SystemExit":
        return None
    if found := _LOCAL_RANK.search(error.text):
        option = found["option"]
        text = (
            f"it passes `--{option}` to the script, whose parser does not accept it: add"
            f' `parser.add_argument("--{option}", type=int)` to the script, or start it with'
            " `--no_local_rank` (deepspeed) or torchrun, and read the variable LOCAL_RANK"
        )
        return Explained(kind="refusal", product="launcher", text=text)
    if found := _OF_TORCHRUN.search(error.text):
        text = (
            f"`--{found['option']}` is an option of its own: put it before the script; what stands"
            " after the script goes to the script"
        )
        return Explained(kind="refusal", product="torchrun", text=text)
    return None
