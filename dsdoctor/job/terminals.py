"""What a command runs in a terminal of its own."""

from __future__ import annotations

import posixpath

#: Programs that run a command in a terminal of its own, with their options that take a value, by
#: their last letter.
_TERMINALS = {
    "tmux": frozenset("scntxyeF"),
    "screen": frozenset("SsTthpc"),
    "script": frozenset("EIOBTmo"),
}
_NEW_WINDOWS = frozenset({"new", "new-session", "neww", "new-window", "splitw", "split-window"})


def typed(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command that a terminal program runs, for the shell if it is one string.

    It is the last argument of `tmux new`, what follows the options of `screen`, and what follows
    `-c` of `script` (tmux 3.5, GNU Screen 5.0, util-linux 2.40).

    >>> typed(("tmux", "new", "-d", "-s", "a", "torchrun t.py | tee log"))
    ('sh', '-c', 'torchrun t.py | tee log')
    >>> typed(("screen", "-dmS", "a", "torchrun", "t.py")), typed(("tmux", "attach"))
    (('torchrun', 't.py'), ('tmux', 'attach'))
    """
    program = posixpath.basename(words[0]) if words else ""
    if program not in _TERMINALS:
        return words
    rest = list(words[1:])
    if program == "tmux":
        if rest[:1] and rest.pop(0) not in _NEW_WINDOWS:
            return words
    elif program == "script" and "-c" in rest:
        rest = rest[rest.index("-c") + 1 :][:1]
    takes = _TERMINALS[program]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option[-1:] in takes and rest:
            rest.pop(0)
    if len(rest) == 1 and " " in rest[0]:
        return ("sh", "-c", rest[0])
    return tuple(rest) if rest and program != "script" else words
