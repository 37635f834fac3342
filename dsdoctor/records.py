r"""Records that a child writes to stdout, one per line: `\x1edsdoctor:{json}`."""

from __future__ import annotations

import json
from typing import Any

SENTINEL = "\x1edsdoctor:"


def decode(output: bytes) -> list[dict[str, Any]]:
    r"""Finds the records in the output of a child, and ignores the rest.

    Libraries may print in between, and a child that was killed leaves an incomplete line.

    >>> decode(b'hello\x1edsdoctor:{"step": "a"}\nnoise\n\x1edsdoctor:{"st')
    [{'step': 'a'}]
    >>> decode(b'\xff\x1edsdoctor:[1]\n\x1edsdoctor:{"done": true}')
    [{'done': True}]
    """
    records: list[dict[str, Any]] = []
    for piece in output.decode("utf-8", "replace").split(SENTINEL)[1:]:
        try:
            record = json.loads(piece.partition("\n")[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
