"""Options of the launchers that can be judged from the command line alone.

Source: torch 1.10 to 2.13 distributed/run.py, deepspeed 0.9 to 0.19 launcher/runner.py and
launcher/constants.py, accelerate 0.12 to 1.15 commands/launch.py (read 2026-11-28).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dsdoctor.probes.accelerate_keys import OPTIONS, OTHERS
from dsdoctor.probes.command_tables import LONG, SWITCHES

_ALIKE = 0.8
#: Words in place of a number of processes: torch's own, and the accelerators that register with it.
_COUNTS = frozenset(
    {"auto", "cpu", "gpu", "xpu", "npu", "hpu", "mlu", "musa", "tpu", "mps", "sdaa", "gcu", "supa"}
)
_PRECISIONS = ("no", "fp16", "bf16", "fp8")
#: What starts deepspeed's ranks on other nodes.
_STARTERS = ("pdsh", "openmpi", "mpich", "impi", "slurm", "mvapich")


#: Options of deepspeed 0.9 to 0.19.
_DEEPSPEED = frozenset(
    """
    hostfile include exclude num_nodes num_gpus master_port master_addr launcher launcher_args
    module no_python no_local_rank no_ssh_check force_multi save_pid enable_each_rank_log autotuning
    bind_cores_to_rank bind_core_list
    """.split(),  # noqa: SIM905  # reads as a list
)
#: What to write where a launcher takes an option of the script for its own.
BEFORE_SCRIPT = "write `--` before the script, or rename its option"


def stops_at_ambiguous(python: str) -> bool:
    """Whether argparse of a Python looks for its options among the arguments of the script too.

    Changed by gh-58573, in 3.12.8, 3.13.1 and 3.14. Run with 3.8 to 3.12.1, 3.13.0, 3.14.10 and
    3.15.2 on 2026-11-29.

    >>> stops_at_ambiguous("3.11.9"), stops_at_ambiguous("3.12.8"), stops_at_ambiguous("3.13.0")
    (True, False, True)
    """
    version = tuple(int(part) for part in re.findall(r"\d+", python)[:3])
    return version < (3, 12, 8) or (3, 13) <= version < (3, 13, 1)


def ambiguous_option(launcher: str, script_args: Sequence[str], python: str) -> str:
    """A script's option at which the launcher stops, as the beginning of several of its own.

    torchrun 2.1 and later have each option with `-` and with `_`; accelerate takes whole names
    only.

    >>> ambiguous_option("torchrun", ["--lr", "1", "--run=3"], "3.11.9")
    "the script's option `--run` is ambiguous; it could be `--run-path` or `--run_path`"
    >>> ambiguous_option("torchrun", ["--role", "a", "--", "--run"], "3.11.9")
    ''
    """
    if not stops_at_ambiguous(python):
        return ""
    names = {"torchrun": {*LONG["torchrun"], *SWITCHES["torchrun"]}, "deepspeed": _DEEPSPEED}
    known = {f"--{name}" for name in names.get(launcher, ())}
    if launcher == "torchrun":
        known |= {f"--{word[2:].replace('_', '-')}" for word in known}
    for word in script_args:
        if word == "--":
            break
        option = word.partition("=")[0]
        if len(option) < 3 or not option.startswith("--") or option in known:  # noqa: PLR2004
            continue
        meant = sorted(one for one in known if one.startswith(option))
        if len(meant) > 1:
            return f"the script's option `{option}` is ambiguous; it could be {either(meant[:3])}"
    return ""


def misspelled_option(launcher: str, options: Mapping[str, str]) -> str:
    """An option that no release has, with the one that was meant; "" without one.

    For where the launcher itself is not asked, which may be newer than these tables.

    Args:
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        options: long names, `-` as `_`, to their values.

    >>> misspelled_option("torchrun", {"nproc_per_nodes": "8"})
    'unrecognized option `--nproc_per_nodes`; the closest is `--nproc_per_node`'
    >>> misspelled_option("torchrun", {"nproc_per": "8"})
    ''
    """
    known = {*LONG.get(launcher, ()), *SWITCHES.get(launcher, ())}
    if launcher == "accelerate":
        known |= OPTIONS
    for name in options if known else ():
        # argparse accepts the beginning of an option
        if len(name) < 2 or any(option.startswith(name) for option in known):  # noqa: PLR2004
            continue
        if launcher == "accelerate" and name.startswith(OTHERS):
            continue
        import difflib  # noqa: PLC0415  # only for such an option

        near = difflib.get_close_matches(name, sorted(known), 1, _ALIKE)
        if near:
            return f"unrecognized option `--{name}`; the closest is `--{near[0]}`"
    return ""


#: Options after which a launcher needs no script.
_ASKING = frozenset({"h", "help", "V", "version"})


def is_script_missing(launcher: str, options: Mapping[str, str], script: str | None) -> bool:
    """Whether a command passes no script, and no unknown option that may have taken it.

    >>> is_script_missing("torchrun", {"nnodes": "2"}, None)
    True
    >>> is_script_missing("torchrun", {"nodes": "t.py"}, None)
    False
    """
    known = {*LONG.get(launcher, ()), *SWITCHES.get(launcher, ())}
    known |= OPTIONS if launcher == "accelerate" else set()
    return not script and not _ASKING & options.keys() and options.keys() <= known


def rejected_word(launcher: str, options: Mapping[str, str]) -> str:
    """Why a launcher rejects the value of an option, after its parser accepted it; "" if not.

    >>> rejected_word("torchrun", {"nproc_per_node": "eight"})
    '`--nproc_per_node eight` is no count; expected a number, `auto`, `gpu` or `cpu`'
    """
    count = options.get("nproc_per_node", "") if launcher == "torchrun" else ""
    if count and "$" not in count and not re.fullmatch(r"-?\d+", count) and count not in _COUNTS:
        return f"`--nproc_per_node {count}` is no count; expected a number, `auto`, `gpu` or `cpu`"
    precision = options.get("mixed_precision", "") if launcher == "accelerate" else ""
    if precision and "$" not in precision and precision not in _PRECISIONS:
        return f"`--mixed_precision {precision}` is unknown; expected {either(_PRECISIONS)}"
    # not read for a run on this node alone
    several = launcher == "deepspeed" and {"hostfile", "num_nodes", "force_multi"} & options.keys()
    starter = options.get("launcher", "") if several else ""
    if starter and "$" not in starter and starter.lower() not in _STARTERS:
        return f"`--launcher {starter}` is unknown; expected {either(_STARTERS)}"
    return ""


def rejected_option(launcher: str, options: Mapping[str, str]) -> str:
    """Why a launcher rejects its options, as far as the tables know; "" if it is not certain."""
    return misspelled_option(launcher, options) or rejected_word(launcher, options)


def either(words: Sequence[str]) -> str:
    """Words in a sentence, one of which is expected.

    >>> either(["cpu", "nvme", "none"])
    '`cpu`, `nvme` or `none`'
    """
    named = [f"`{word}`" for word in words]
    return f"{', '.join(named[:-1])} or {named[-1]}" if named[1:] else named[0]
