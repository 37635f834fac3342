"""DeepSpeed's hostfile: nodes and how many GPUs of each a run may use."""

from __future__ import annotations

from pathlib import Path

from dsdoctor.errors import UsageError


def read(path: str) -> dict[str, int]:
    """Node to slots, as DeepSpeed reads them.

    Raises:
        UsageError: it cannot be read, or a line is no `host slots=N`.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"`--hostfile {path}` cannot be read: {error.strerror}") from None
    slots: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        value = words[1].removeprefix("slots=") if len(words) == 2 else ""  # noqa: PLR2004
        if not value.isdecimal() or words[0] in slots:
            raise UsageError(
                f"`{path}` line {number} is `{line.strip()}`; "
                "expected `HOST slots=N`, each host once"
            )
        slots[words[0]] = int(value)
    if not slots:
        raise UsageError(f"`{path}` names no host; expected lines such as `gpu-1 slots=8`")
    return slots
