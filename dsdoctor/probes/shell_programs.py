"""Which commands of a script launch a job; a launcher's name may be a file or a word, too."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from dsdoctor.probes.command_options import launches_at
from dsdoctor.probes.command_tables import (
    CARRIERS,
    MODULES,
    PROGRAMS,
    STARTERS,
    TRAINERS,
    UNFOLLOWED,
)
from dsdoctor.probes.command_wrappers import unwrap
from dsdoctor.probes.shell_words import SHELL

#: Programs whose arguments are names, files or text, never a command.
_NAMING = frozenset(
    {"hash", "type", "which", "whereis", "pkill", "killall", "pgrep", "kill", "ps", "trap", "grep",
     "egrep", "fgrep", "rg", "cd", "pushd", "mkdir", "rmdir", "rm", "cp", "mv", "ln", "ls", "cat",
     "tail", "head", "less", "more", "touch", "chmod", "chown", "stat", "file", "du", "find", "git",
     "svn", "module", "ml", "spack", "source", ".", "pip", "pip3", "pipx", "apt", "apt-get", "yum",
     "dnf", "brew", "echo", "printf", "export", "declare", "local", "readonly", "unset", "alias",
     "test", "[", "[[", "wget", "curl", "tar", "unzip", "zip", "sed", "awk", "tee", "rsync", "scp",
     "read", "for", "in", "case"}
)  # fmt: skip
#: Programs that look at a node; `srun` starts them beside a job.
_LOOKING = frozenset(
    {"hostname", "nvidia-smi", "rocm-smi", "npu-smi", "true", "sleep", "printenv", "date", "whoami",
     "pwd", "uname", "ibstat", "free", "df", "sync", "sinfo", "scontrol", "ulimit", "env"}
)  # fmt: skip
_STARTERS = frozenset(name for name, kind in PROGRAMS.items() if kind in STARTERS)
_ENVIRONMENTS = frozenset({"conda", "mamba", "micromamba"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
#: Options of a container with a name or a path.
_OF_CONTAINER = frozenset(
    {"--name", "--hostname", "--network", "--net", "--label", "--workdir", "--volume", "-w", "-v",
     "-h", "-t", "--tag"}
)  # fmt: skip
#: Words after a launcher that only ask it for something.
_ASKING = frozenset({"--version", "-V", "--help", "-h"})
#: Commands of accelerate that launch no script of the user's (1.15 commands/accelerate_cli.py).
_OF_ACCELERATE = frozenset(
    {"config", "env", "estimate-memory", "merge-weights", "test", "to-fsdp2", "tpu-config"}
)
#: Launchers whose names have other uses.
_OTHERS_TOO = frozenset({"colossalai", "composer", "flux"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
PYTHON = re.compile(r"python[\d.]*")
#: Options of a launcher that hardly another program has.
_OF_LAUNCHERS = re.compile(
    r"--(?:nproc[_-]per[_-]node|nnodes|num_gpus|rdzv[_-]\w{1,20}|use_deepspeed|num_processes"
    r"|num_machines|config_file)(?:=.*)?"
)


def is_launch(words: Sequence[str]) -> bool:
    """Whether a command starts a launcher or a trainer, possibly after `srun`, `env` or `nohup`.

    >>> is_launch(["pkill", "-f", "torchrun"]), is_launch(["nohup", "torchrun", "t.py"])
    (False, True)
    """
    begun = next((n for n, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    program = posixpath.basename(words[begun]) if begun < len(words) else ""
    if program in _NAMING or (program == "command" and {"-v", "-V"} & {*words[begun + 1 :]}):
        return False
    if program in _ENVIRONMENTS and list(words[begun + 1 : begun + 2]) != ["run"]:
        return False
    if program in _CONTAINERS and not {"run", "exec"} & {*words[begun + 1 : begun + 3]}:
        return False
    for place, word in enumerate(words):
        name = posixpath.basename(word)
        after = words[place + 1] if place + 1 < len(words) else ""
        if name in PROGRAMS or name in TRAINERS:
            # `pip install deepspeed`, `which torchrun`
            if {"install", "which", "echo", "pip"} & set(words[:place]):
                return False
            if program in _CONTAINERS and (words[place - 1] in _OF_CONTAINER or _is_shell(after)):
                continue
            if place and not after and name not in TRAINERS:  # `yolk -V deepspeed`
                return False
            return _starts(name, words[place + 1 :])
        if PYTHON.fullmatch(name):
            return _runs_launcher(words[place + 1 :]) or is_launch(after_dashes(words))
        if word.startswith("$") and after == "-m":
            return "".join(words[place + 2 : place + 3]) in MODULES
    return False


def _starts(name: str, rest: Sequence[str]) -> bool:
    """Whether a launcher or trainer with these words starts something, and not only looks."""
    after = rest[0] if rest else ""
    if after in _ASKING or (name == "accelerate" and after in _OF_ACCELERATE):
        return False
    # PHP's `composer install`, `flux alloc`; `accelerate train.py` is a mistake of its own
    if name in _OTHERS_TOO and launches_at(name, rest) is None:
        return False
    return name not in _STARTERS or not _looks(rest)


def after_dashes(words: Sequence[str]) -> Sequence[str]:
    """The command after `--`, which a program passes on to other machines; () without one.

    >>> after_dashes(["kubectl", "exec", "pod-0", "--", "torchrun", "t.py"])
    ['torchrun', 't.py']
    """
    return words[words.index("--") + 1 :] if "--" in words else ()


def without_carrier(words: Sequence[str]) -> tuple[str, ...]:
    """A command without the program that passes it on to a container, a queue or a profiler.

    >>> without_carrier(["srun", "-N2", "apptainer", "exec", "--nv", "a.sif", "torchrun", "t.py"])
    ('srun', '-N2', 'torchrun', 't.py')
    >>> without_carrier(["docker", "run", "--name", "deepspeed", "image", "python", "t.py"])[:2]
    ('docker', 'run')
    """
    names = [posixpath.basename(word) for word in words]
    begun = next((n for n, name in enumerate(names) if name in CARRIERS), len(words))
    for place in range(begun + 1, len(words)):
        name, before = names[place], words[place - 1]
        after = words[place + 1] if place + 1 < len(words) else ""
        if before.startswith("-") and before != "--":  # perhaps the value of an option
            continue
        launcher = name in PROGRAMS and name not in _STARTERS and after not in PROGRAMS
        launcher = launcher and launches_at(name, words[place + 1 :]) is not None
        if launcher or (PYTHON.fullmatch(name) and _runs_launcher(words[place + 1 :])):
            return (*words[:begun], *words[place:])
    return tuple(words)


def unfollowed(words: Sequence[str]) -> str:
    """Why a command that starts a job cannot be followed; "" if it can, or if it starts none.

    >>> unfollowed(["A=1", "torchx", "run", "dist.ddp", "--script", "t.py"])
    '`torchx run` starts what its component describes'
    """
    rest, _ = unwrap(list(words))
    if not rest or is_launch(after_dashes(rest)):
        return ""
    if any(word.startswith("--wrap") for word in rest):  # sbatch passes it to a shell
        return ""
    name = posixpath.basename(rest[0])
    for known in ((name, *rest[1:2]), (name,)):
        if known in UNFOLLOWED:
            return f"`{' '.join(known)}` {UNFOLLOWED[known]}"
    return ""


def starts_nothing(name: str) -> bool:
    """Whether a program takes names, files or text, or looks at a node.

    >>> starts_nothing("grep"), starts_nothing("nvidia-smi"), starts_nothing("tune")
    (True, True, False)
    """
    return name in _NAMING or name in _LOOKING


def _is_shell(word: str) -> bool:
    return SHELL.fullmatch(posixpath.basename(word)) is not None


def _looks(words: Sequence[str]) -> bool:
    """Whether `srun` starts a program that looks at the node, and nothing else."""
    names = [posixpath.basename(word) for word in words]
    if any(name in PROGRAMS or name in TRAINERS or PYTHON.fullmatch(name) for name in names):
        return False
    own = next((name for name in names if name in _LOOKING or name in _NAMING), "")
    return bool(own) and not any(_is_shell(name) or name.endswith((".sh", ".py")) for name in names)


def _runs_launcher(words: Sequence[str]) -> bool:
    """Whether the words after `python` run the module or the file of a launcher."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        if words[place] == "-m":
            return "".join(words[place + 1 : place + 2]) in MODULES
        if words[place] == "-c":
            return False
        place += 2 if words[place] in ("-X", "-W") else 1
    return place < len(words) and posixpath.basename(words[place]) in PROGRAMS


def may_launch(words: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that starts with an unknown variable, if it may launch a job.

    Args:
        words: of the command.
        values: what the script sets the variable to, depending on its branches.

    Returns:
        The words with the first value that launches a job, or as they are if they contain an option
        of a launcher; () if nothing says that it is one.

    >>> may_launch(["$RUN", "t.py"], ["python", "torchrun --nnodes 1"])
    ('torchrun', '--nnodes', '1', 't.py')
    """
    for value in values:
        if is_launch(value.split()):
            return (*value.split(), *words[1:])
    options = any(_OF_LAUNCHERS.fullmatch(word) for word in words[1:])
    return tuple(words) if options and not values else ()
