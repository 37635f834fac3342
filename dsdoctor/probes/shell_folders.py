"""The folder in which a shell script starts a command: what `cd` has changed before it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from dsdoctor.probes.shell_functions import split_functions
from dsdoctor.probes.shell_lines import ShellCommand, launches, walked
from dsdoctor.probes.shell_programs import is_launch
from dsdoctor.probes.shell_rows import logical_lines

_CHANGES = frozenset({"cd", "pushd", "popd"})
#: A `cd` after one of these may not run, or applies to a subshell only.
_DOUBTFUL = re.compile(r"^\s*\(|[^$\w]\(|\[|\btest\s|\|\||`")
#: Variables that hold the folder from which a job was submitted, where its script starts.
_SUBMITTED = frozenset({"SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "LS_SUBCWD", "SGE_O_WORKDIR"})
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def folder_at(
    text: str, launch: ShellCommand, cwd: str, variables: Mapping[str, str]
) -> str | None:
    r"""The folder in which a launch line of a script runs; None if only the shell knows it.

    Args:
        text: the script.
        launch: one of its launch lines.
        cwd: the folder in which the script is started.
        variables: of the environment.

    >>> def at(text):
    ...     return folder_at(text, launches(text)[0], "/job", {"HOME": "/home/a"})
    >>> at("torchrun t.py"), at("set -e\ncd src\ncd .. && cd b\ntorchrun t.py")
    ('/job', '/job/b')
    >>> at("cd ~/p || exit 1\ntorchrun t.py"), at("bash -c 'cd $HOME; torchrun t.py'")
    ('/home/a/p', '/home/a')
    >>> at("if x; then\n cd a\nfi\ntorchrun t.py"), at("(cd apex && make)\ntorchrun t.py")
    (None, '/job')
    >>> at("(cd a && torchrun t.py)"), at("(cd a)\n(cd b && torchrun t.py)")
    ('/job/a', '/job/b')
    >>> at("cd $ROOT\ntorchrun t.py"), at("[ -d a ] && cd a\ntorchrun t.py")
    (None, None)
    """
    for command, folder in in_folders(text, cwd, variables):
        words = command.words
        if command.line != launch.line:
            continue
        inner = next((word for word in words[1:] if " " in word and launches(word)), "")
        if inner and folder is not None:  # `bash -c`
            return folder_at(inner, launches(inner)[0], folder, variables)
        if inner or command.depends_on or is_launch(words) or words == launch.words:
            return folder
    return folder


def in_folders(
    text: str, cwd: str, variables: Mapping[str, str]
) -> Iterator[tuple[ShellCommand, str | None]]:
    r"""The commands of a script, each with its folder; None if only the shell knows it.

    >>> [folder for _, folder in in_folders("a\n(cd b; c)\nd", "/job", {})]
    ['/job', '/job', '/job/b', '/job']
    """
    rows = dict(logical_lines(text))
    folder: str | None = cwd
    before: list[str] = []
    subshell, outside = 0, folder  # its line, and the folder around it
    for command, state in walked(text):
        if subshell and command.line != subshell:
            subshell, folder = 0, outside
        yield command, folder
        words = command.words
        if words[:1] and words[0] in _CHANGES:
            row = rows.get(command.line, "")
            begun = row.partition(words[0])[0]
            if row.lstrip().startswith("(") and row.rstrip().endswith(")"):
                if not subshell:
                    subshell, outside = command.line, folder
                begun = begun.replace("(", " ", 1)
            sure = not state.depth and not _DOUBTFUL.search(begun)
            folder = _changed(words, folder, before, variables, cwd) if sure else None


def all_run(text: str, found: Sequence[ShellCommand]) -> bool:
    r"""Whether a script surely runs all these commands, one after the other.

    >>> def sure(text):
    ...     return all_run(text, launches(text))
    >>> sure("torchrun a.py\ntorchrun b.py &\nwait"), sure("if x; then\n torchrun a.py\nfi")
    (True, False)
    >>> sure("[ -d a ] && torchrun a.py"), sure("go() {\n torchrun a.py\n}\n$1")
    (False, False)
    """
    outside = dict(split_functions(list(logical_lines(text)))[0])
    blocks = {command.line for command, state in walked(text) if state.depth}
    return all(
        one.line in outside
        and one.line not in blocks
        and not re.search(r"\|\||&&|\[", outside[one.line].partition(one.words[0])[0])
        for one in found
    )


def _changed(
    words: tuple[str, ...],
    folder: str | None,
    before: list[str],
    variables: Mapping[str, str],
    cwd: str,
) -> str | None:
    """The folder after `cd`, `pushd` or `popd`."""
    if words[0] == "popd":
        return before.pop() if before else None
    if words[0] == "pushd" and folder is not None:
        before.append(folder)
    targets = [word for word in words[1:] if word not in ("-P", "-L", "--")]
    target = re.sub(r"^~(?=/|$)", "$HOME", targets[0] if targets else "~")

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name in _SUBMITTED:
            return variables.get(name, cwd)
        if name == "PWD":
            return folder or found[0]
        return variables.get(name, found[0]) if name == "HOME" else found[0]

    target = _VARIABLE.sub(value, target)
    if re.search(r"[$`*?{}]|\N{HORIZONTAL ELLIPSIS}", target) or target.startswith("-"):
        return None
    if target.startswith("/"):
        return posixpath.normpath(target)
    return None if folder is None else posixpath.normpath(posixpath.join(folder, target))
