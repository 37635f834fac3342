"""Combinations of releases that are known to be incompatible.

Sources: DeepSpeed's pull requests, by number, with the release that `version.txt` names at the
merge; METADATA of the wheels of torch, transformers and accelerate; read 2026-11-21. DeepSpeed's
Python: classifiers in setup.py, where DeepSpeed#6933 (2025-01-08, first in 0.16.3) dropped 3.6 and
3.7; read 2026-11-22.
"""

from __future__ import annotations

import msgspec
from packaging.version import Version

from dsdoctor_checks._util import at_least


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


class Floor(msgspec.Struct, frozen=True):
    """Releases of DeepSpeed that need a newer torch.

    Attributes:
        since: the first of them.
        torch: the oldest torch that they work with.
        effect: what the user sees.
        source: where the fact comes from.
        until: the first later release that does without; "" = none so far.
        above: the oldest torch that is affected; older ones are not.
        at_import: it fails when deepspeed is imported.
        stages: the ZeRO stages whose training fails; () = any training.
    """

    since: str
    torch: str
    effect: str
    source: str
    until: str = ""
    above: str = "0"
    at_import: bool = False
    stages: tuple[int, ...] = ()

    def holds(self, deepspeed: str | None, torch: str) -> bool:
        """Whether a release of DeepSpeed (None = the newest) fails with a torch."""
        return (
            at_least(deepspeed, self.since)
            and not (self.until and at_least(deepspeed, self.until))
            and at_least(torch, self.above)
            and not at_least(torch, self.torch)
        )


#: DeepSpeed's metadata name no oldest torch (from 0.19.1 on: 2.0), so pip installs any release
#: beside any torch. First those that fail earliest. Tried on CPUs with torch 1.13.1, 2.0.1, 2.1.2,
#: 2.2.2 and 2.3.1: three steps without ZeRO and with stages 1 and 2. Read in the sdists, and in the
#: wheels of torch. 2026-11-30.
TORCH_FLOORS = (
    Floor(
        "0.18.7", "2.4",
        "the import fails with `has no attribute 'custom_op'` (0.18.7 and 0.18.8: `'custom_fwd'`)",
        "compile/custom_ops/all_to_all.py of 0.18.9 to 0.19.7, runtime/zero/linear.py of 0.18.7",
        until="0.19.8", at_import=True,
    ),
    Floor(
        "0.16.5", "2.0",
        "`deepspeed.initialize` fails with `unexpected keyword argument 'prepend'`",
        "runtime/engine.py of 0.16.4 and 0.16.5",
    ),
    Floor(
        "0.15.3", "2.3",
        "a rank's first line of log fails with `has no attribute 'is_compiling'`",
        "utils/logging.py of 0.15.2 to 0.15.4", until="0.15.4", above="2.1",
    ),
    Floor(
        "0.17.2", "2.1",
        "the first step fails with `IndexError: list index out of range` in `stage_1_and_2.py`",
        "0.17.0, 0.17.1, 0.17.2, 0.17.3, 0.17.6, 0.18.2 and 0.19.8 tried with torch 2.0.1", stages=(1, 2),
    ),
    Floor(
        "0.18.3", "2.3",
        "the first backward pass fails: `count_used_parameters_in_backward requires internal PyTorch"
        " APIs`",
        "runtime/utils.py of 0.18.2 and 0.18.3; torch/autograd/graph.py of 2.2.2 and 2.3.0",
        stages=(1, 2, 3),
    ),
    Floor(
        "0.18.3", "2.4.1",
        "the first backward pass fails with `'NoneType' object has no attribute 'next_functions'`",
        "runtime/utils.py of 0.18.6 and 0.18.7; torch/autograd/graph.py of 2.4.0 and 2.4.1",
        until="0.18.7", above="2.3", stages=(1, 2, 3),
    ),
)  # fmt: skip


def floors_of(deepspeed: str | None, torch: str | None) -> list[Floor]:
    """What a release of DeepSpeed needs that this torch does not have, what fails first first.

    Args:
        deepspeed: the release; None = the newest.
        torch: the release of torch; None = not known.

    >>> [floor.torch for floor in floors_of("0.18.3", "2.2.2")], floors_of("0.18.2", "2.2.2")
    (['2.3'], [])
    """
    return [] if torch is None else [row for row in TORCH_FLOORS if row.holds(deepspeed, torch)]


def deepspeed_for(torch: str | None, needed: str = "") -> str:
    """The requirement for a DeepSpeed that trains with an installed torch.

    Args:
        torch: the release of torch; None = not known.
        needed: the oldest DeepSpeed that will do; "" = any.

    >>> deepspeed_for("2.1.2+cu121"), deepspeed_for("1.13.1"), deepspeed_for("2.3.1")
    ('deepspeed<0.18.3', 'deepspeed<0.16.5', 'deepspeed')
    >>> deepspeed_for("2.0.1", "0.8.2"), deepspeed_for("2.12.0", "0.19.5")
    ('deepspeed>=0.8.2,<0.17.2', 'deepspeed>=0.19.5')
    """
    bounds = [f">={needed}"] if needed else []
    if floors := floors_of(None, torch):
        bounds.append(f"<{min((row.since for row in floors), key=Version)}")
    return f"deepspeed{','.join(bounds)}"


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

#: Oldest torch that a release of transformers works with. Before 4.52 none is asked for; from then on
#: `is_torch_available` is false with an older one (utils/import_utils.py), but in 4.56 and 4.57 it
#: still allows 2.1, with which utils/generic.py fails, and in 5.0 it allows 2.2 and 2.3, whose
#: `is_autocast_enabled` does not take what the models' first step passes. Wheels of 4.51.3, 4.52.4, 4.55.4, 4.56.2, 4.57.6, 5.0 to 5.3, 5.6, 5.10, 5.12 to 5.20 and
#: 5.24, read 2026-11-30; tried on CPUs (benchmarks/stacks.py).
TRANSFORMERS_TORCH = (
    ("5.20", "2.6"), ("5.15", "2.5"), ("5.0", "2.4"), ("4.56", "2.2"), ("4.52", "2.1"),
)  # fmt: skip
#: Oldest accelerate that transformers' Trainer works with: the one whose `unwrap_model` has the
#: argument that the Trainer passes (trainer.py of 4.51.3 and 4.52.3, accelerator.py of 1.2.1 and
#: 1.3.0, read 2026-11-28), and before 4.52 the one that `TrainingArguments` asks for
#: (training_args.py and utils/import_utils.py of the 4.30 to 4.51 wheels, read 2026-11-30).
TRANSFORMERS_ACCELERATE = (
    ("4.52", "1.3.0"), ("4.45", "0.26.0"), ("4.37", "0.21.0"), ("4.30", "0.20.1"),
)  # fmt: skip
#: Releases of transformers, from and before, whose Trainer passes `dispatch_batches` to
#: `Accelerator`, and the first accelerate that does not take it (trainer.py of 4.31.0, 4.32.1,
#: 4.38.2, 4.39.3 and 4.40.2; accelerator.py of 0.34.2 and 1.0.1; tried 2026-11-30).
TRAINER_PASSES_DISPATCH_BATCHES = ("4.32", "4.40", "1.0")
#: Releases of transformers whose Trainer resumes with any torch: from the first and before the second.
#: Earlier ones read `rng_state.pth`, which contains NumPy's state, with `torch.load` and the new
#: default of torch 2.6, which refuses it. Later ones need torch 2.6: 4.51 asks older torch to read
#: only weights, and 4.52 asks for 2.6 before it reads any file of torch (trainer.py of 4.46.3, 4.47.1,
#: 4.50.3, 4.51.3, 4.52.4, 4.57.6, 5.0.0 and 5.24.0; resuming tried under ZeRO-2 with 4.46.3 and
#: 4.47.1 on torch 2.6.0, and 4.50.3, 4.51.3 and 4.57.6 on 2.3.1; 2026-11-30).
TRAINER_RESUMES = ("4.47", "4.51")
#: The torch that divides the two.
TORCH_OF_WEIGHTS = "2.6"


def torch_floor(transformers: str | None) -> str | None:
    """The oldest torch for a release of transformers; None = any.

    >>> torch_floor("5.20.0"), torch_floor("4.57.6"), torch_floor("4.51.3")
    ('2.6', '2.2', None)
    """
    rows = TRANSFORMERS_TORCH
    return next((floor for since, floor in rows if at_least(transformers, since)), None)


def transformers_for(torch: str) -> str:
    """The requirement for a transformers that works with an installed torch.

    >>> transformers_for("2.3.1+cu121"), transformers_for("2.1.2"), transformers_for("2.6.0")
    ('transformers<5.0', 'transformers<4.56', 'transformers')
    """
    above = [since for since, floor in TRANSFORMERS_TORCH if not at_least(torch, floor)]
    return f"transformers<{min(above, key=Version)}" if above else "transformers"


def accelerate_for(transformers: str) -> str:
    """The requirement for an accelerate that the Trainer of a release of transformers works with.

    >>> accelerate_for("4.36.2"), accelerate_for("4.46.3"), accelerate_for("4.28.1")
    ('accelerate>=0.20.1,<1.0', 'accelerate>=0.26.0', 'accelerate')
    """
    rows, (since, before, gone) = TRANSFORMERS_ACCELERATE, TRAINER_PASSES_DISPATCH_BATCHES
    floor = next((floor for first, floor in rows if at_least(transformers, first)), None)
    bounds = [f">={floor}"] if floor else []
    if at_least(transformers, since) and not at_least(transformers, before):
        bounds.append(f"<{gone}")
    return f"accelerate{','.join(bounds)}"
