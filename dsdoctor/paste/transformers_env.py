"""`transformers env`; also the older list that users copy without backticks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste import dashed
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_FIRST = re.compile(r"(?i)\s*(?:[-*•]\s+)?`{0,2}transformers`{0,2} version`{0,2}\s*:")


def _read(lines: Sequence[Line], into: Statements) -> None:
    dashed.read(lines, into, _FIRST)


READER = Reader("transformers env", _read)
