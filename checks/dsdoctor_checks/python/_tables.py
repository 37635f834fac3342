"""Combinations of releases that are known to be incompatible.

Sources: DeepSpeed's pull requests, by number, with the release that `version.txt` names at the
merge; METADATA of the wheels of torch, transformers and accelerate; read 2026-11-21. DeepSpeed's
Python: classifiers in setup.py, where DeepSpeed#6933 (2025-01-08, first in 0.16.3) dropped 3.6 and
3.7; read 2026-11-22.
"""

from __future__ import annotations

import msgspec


class Bad(msgspec.Struct, frozen=True):
    """Releases of DeepSpeed that are incompatible with another package.

    Attributes:
        other: distribution, or `python`.
        since: first release of the other package that is affected.
        fixed: first DeepSpeed that works with it.
        effect: what the user sees.
        at_import: it fails when deepspeed is imported; otherwise when ops are built.
        source: where the fact comes from.
        at_load: only loading a checkpoint fails.
    """

    other: str
    since: str
    fixed: str
    effect: str
    source: str
    at_import: bool = True
    at_load: bool = False


DEEPSPEED_TORCH = (
    Bad(
        "torch",
        "2.0",
        "0.8.2",
        "the import fails with `No module named 'torch._six'`",
        "DeepSpeed#2863",
    ),
    Bad(
        "torch",
        "2.3",
        "0.14.1",
        "the import fails with `cannot import name 'log' from "
        "'torch.distributed.elastic.agent.server.api'`",
        "DeepSpeed#5346",
    ),
    Bad(
        "torch",
        "2.4",
        "0.14.4",
        "the import fails with `cannot import name '_get_socket_with_port'`",
        "DeepSpeed#5654",
    ),
    Bad(
        "torch",
        "2.6",
        "0.16.0",
        "loading a checkpoint fails with `Weights only load failed`: since torch 2.6, `torch.load` reads"
        " only weights unless `weights_only=False` is passed",
        "torch_checkpoint_engine.py of the sdists 0.15.4 and 0.16.0, read 2026-11-28",
        at_import=False,
        at_load=True,
    ),
    Bad(
        "torch",
        "2.12",
        "0.19.5",
        "ops do not compile: torch's headers need C++20, but DeepSpeed compiles with C++17",
        "DeepSpeed#8238",
        at_import=False,
    ),
)

#: Oldest Python of a release and of all later ones: distribution, release, Python
#: (`Requires-Python` of the wheels; classifiers of DeepSpeed).
OLDEST_PYTHON = (
    ("deepspeed", "0.16.3", (3, 8)),
    ("deepspeed", "0.3", (3, 6)),
    ("torch", "2.15", (3, 11)),
    ("torch", "2.9", (3, 10)),
    ("torch", "2.6", (3, 9)),
    ("torch", "2.0", (3, 8)),
    ("transformers", "5.23", (3, 11)),
    ("accelerate", "1.15", (3, 10)),
)

#: Oldest torch with which transformers offers its models: release of transformers, torch
#: (utils/import_utils.py of the wheels 4.51.3, 4.52.3, 4.57.3, 5.0.0, 5.1.0 and 5.3.0, read
#: 2026-11-28).
TRANSFORMERS_TORCH = (("5.1", "2.4"), ("5.0", "2.2"), ("4.52", "2.1"))
#: Oldest accelerate whose `unwrap_model` has the argument that the Trainer passes: release of
#: transformers, accelerate (trainer.py of 4.51.3 and 4.52.3, accelerator.py of 1.2.1 and 1.3.0, read
#: 2026-11-28).
TRANSFORMERS_ACCELERATE = (("4.52", "1.3.0"),)
