"""What a collector printed, put together again from the output of many nodes."""

from __future__ import annotations

import base64
import re
import zlib
from typing import Any

import msgspec

SCHEMA = "dsdoctor/recording"
MARK = b"\x1edsdoctor-node"
_LINE = re.compile(rb"\x1edsdoctor-node (\S+) (\d+)/(\d+) ([A-Za-z0-9+/=]+)")


def decode(output: bytes) -> dict[str, dict[str, Any]]:
    """Recordings by the name that each collector gave itself.

    Lines of several nodes may be mixed, prefixed (`gpu1: …`, `3: …`) and surrounded by others;
    a recording of which a line is lacking or broken is left out.
    """
    pieces: dict[str, dict[int, bytes]] = {}
    counts: dict[str, int] = {}
    for found in _LINE.finditer(output):
        name = found[1].decode("utf-8", "replace")
        pieces.setdefault(name, {})[int(found[2])] = found[4]
        counts[name] = int(found[3])
    documents: dict[str, dict[str, Any]] = {}
    for name, parts in pieces.items():
        if len(parts) != counts[name]:
            continue
        try:
            packed = base64.b64decode(b"".join(parts[number] for number in sorted(parts)))
            value = msgspec.json.decode(zlib.decompress(packed))
        except (ValueError, zlib.error, msgspec.DecodeError):
            continue
        if isinstance(value, dict) and value.get("schema") == SCHEMA:
            documents[name] = value
    return documents
