"""A list of `- Key: value` whose first lines are missing, or that people filled in.

PyTorch's template of issues had such a list until 2021; `diffusers env` prints one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste import dashed
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_TORCH = re.compile(r"(?i)\s*[-*•]\s+`{0,2}PyTorch version\b[^:]{0,40}:\s*`?\d")
_ITEM = re.compile(r"\s*[-*•]\s+\S.{0,60}?:(?:\s|$)")
#: The template's example of a value, as part of the key.
_EXAMPLE = re.compile(r" \(e\.g\.,[^)]{0,40}\)")
#: Fewer lines may be a sentence that begins with a dash.
_FEWEST = 3
#: The readers of these tools read lists with their heads.
_TOOLS = ("transformers env", "accelerate env", "llamafactory-cli env")


def _read(lines: Sequence[Line], into: Statements) -> None:
    if into.recognizes(_TOOLS):
        return
    run: list[Line] = []
    for line in [*lines, Line(0, "")]:
        if _ITEM.match(line.text) and not line.fence:
            run.append(line)
            continue
        if len(run) >= _FEWEST and any(_TORCH.match(item.text) for item in run):
            into.recognized()
            for item in run:
                dashed.state_item(item._replace(text=_EXAMPLE.sub("", item.text)), into)
        run = []


READER = Reader("a list of versions", _read)
