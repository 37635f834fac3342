"""From a text to the facts that it states."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Environment
from dsdoctor.model.facts.toolchain import CudaToolkits
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste import places
from dsdoctor.paste.lines import Line, lines_of
from dsdoctor.paste.readers import OF_ANY_PLACE, READERS
from dsdoctor.paste.statements import Statements


def environment_of(text: str) -> Snapshot | None:
    """The partial snapshot of a text; None if no reader recognizes a part of it."""
    lines = lines_of(text)
    where = places.places(lines)
    if not places.are_mixed(where):
        return _read(lines, lines).snapshot()
    inner = places.only(lines, where, places.CONTAINER, places.UNKNOWN)
    statements = _read(inner, lines)
    statements.add_of_host(_read(places.only(lines, where, places.HOST), ()))
    return statements.snapshot()


def _read(printed: Sequence[Line], written: Sequence[Line]) -> Statements:
    """What the readers find.

    Args:
        printed: lines for readers of what tools print on the machine that they run on.
        written: lines for readers of everything else.
    """
    statements = Statements()
    for reader in READERS:
        statements.reader = reader.name
        reader.read(written if reader in OF_ANY_PLACE else printed, statements)
    _leave_the_other_nvcc(statements)
    return statements


#: Torch looks for nvcc in the first, then on PATH (its utils/cpp_extension.py, _find_cuda_home).
_HOMES = ("CUDA_HOME", "CUDA_PATH")
_RELEASE = re.compile(r"cuda-(\d{1,2}\.\d{1,2})\b")


def _leave_the_other_nvcc(statements: Statements) -> None:
    """Forgets the nvcc on PATH if the text names the folder of another release for torch."""
    homes = [statements.value(Environment, f"variables.{name}") for name in _HOMES]
    home = next((one for one in homes if isinstance(one, str) and one), "")
    wanted = _RELEASE.search(home)
    found = statements.value(CudaToolkits, "found.0.version")
    on_path = statements.value(CudaToolkits, "found.0.nvcc") == "nvcc"
    if wanted and found and on_path and found != wanted[1]:
        statements.forget(CudaToolkits)
