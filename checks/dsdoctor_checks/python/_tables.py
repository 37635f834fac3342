"""Combinations of releases that are known not to work.

Sources: DeepSpeed's pull requests, by number, with the release that `version.txt` names at the
merge; METADATA of the wheels of torch, transformers and accelerate; read 2026-11-21.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Bad:
    """Releases of DeepSpeed that do not go with another package.

    Attributes:
        other: distribution, or `python`.
        since: release of the other from which the trouble begins.
        fixed: first DeepSpeed that is free of it.
        effect: what the reader sees.
        at_import: whether it shows when deepspeed is imported; else when ops are built.
        source: where this was read.
    """

    other: str
    since: str
    fixed: str
    effect: str
    source: str
    at_import: bool = True


DEEPSPEED_TORCH = (
    Bad(
        "torch",
        "2.0",
        "0.8.2",
        "the import ends in `No module named 'torch._six'`",
        "DeepSpeed#2863",
    ),
    Bad(
        "torch",
        "2.3",
        "0.14.1",
        "the import ends in `cannot import name 'log' from "
        "'torch.distributed.elastic.agent.server.api'`",
        "DeepSpeed#5346",
    ),
    Bad(
        "torch",
        "2.4",
        "0.14.4",
        "the import ends in `cannot import name '_get_socket_with_port'`",
        "DeepSpeed#5654",
    ),
    Bad(
        "torch",
        "2.12",
        "0.19.5",
        "builds of ops stop, for torch's headers need C++20 and DeepSpeed asks for C++17",
        "DeepSpeed#8238",
        at_import=False,
    ),
)

#: Oldest Python of a release and of all later ones: distribution, release, Python
#: (`Requires-Python` of the wheels).
OLDEST_PYTHON = (
    ("torch", "2.15", (3, 11)),
    ("torch", "2.9", (3, 10)),
    ("torch", "2.6", (3, 9)),
    ("torch", "2.0", (3, 8)),
    ("transformers", "5.23", (3, 11)),
    ("accelerate", "1.15", (3, 10)),
)
