"""Variables in a launch line that are set neither by its script nor in the shell that starts it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dsdoctor.probes.shell_variables import OF_PLATFORM

_NAME = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
#: What may set any variable: another script, text that is run, an environment, a scheduler's file.
_SETS_ANY = re.compile(
    r"(?m)(?:^|[;&|(]|\bthen\b|\bdo\b)\s*(?:source|\.|eval|module|ml|spack|conda|mamba|micromamba)\s"
    r"|\bset -a\b|\bdeclare -g|\bmapfile\b|\breadarray\b|\bgetopts\b|#(?:PBS|BSUB|\$)\s.*-[vV]"
    r"|--export\b"
)


def unset_names(text: str, words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    r"""The variables of which a whole word, or the value of an option, is made.

    Args:
        text: the script.
        words: of its launch line, with what is known expanded.
        environment: of the shell that starts the script.

    >>> unset_names("torchrun --n $N t.py --m=${M} $E/x", ("--n", "$N", "--m=${M}", "$E/x"), {})
    ('N', 'M')
    >>> unset_names("read -r N\ntorchrun --n $N", ("--n", "$N"), {})
    ()
    """
    if _SETS_ANY.search(text):
        return ()
    found = []
    for word in words:
        whole = _NAME.fullmatch(word.partition("=")[2] if word.startswith("-") else word)
        name = whole and (whole[1] or whole[2])
        if name and name not in environment and not OF_PLATFORM.fullmatch(name):
            sets = (
                rf"(?<![\w$]){name}\+?="
                rf"|\b(?:read|for|local|declare|export|typeset|select)\b[^\n;]*\b{name}\b|-v\s+{name}\b"
            )
            if not re.search(sets, text):
                found.append(name)
    return tuple(dict.fromkeys(found))
