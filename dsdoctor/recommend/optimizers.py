"""What optimizers keep per trained parameter, in addition to its master weight.

Sources, read on 2026-11-22: DeepSpeed 0.19.8 (`runtime/engine.py`, `runtime/zero/muon`,
`_muon_momentum_buffer` and `_muon_staging_momentum` of `runtime/zero/stage_1_and_2.py`,
`_create_momentum_buffer` of `runtime/zero/stage3.py`), torch 2.13 (`torch/optim`), transformers
5.23 (`optimization.py`), bitsandbytes 0.44 to 0.50 (`optim/optimizer.py`).

ZeRO passes one flat tensor per group to its optimizer. Adafactor, which otherwise keeps rows and
columns of a matrix, therefore keeps one value per parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: bitsandbytes has one fp32 scale per block of this many values (2048 before 0.44, which needed
#: less memory).
_BLOCK = 256


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """The memory of an optimizer.

    Attributes:
        state: bytes per parameter, in addition to the master weight.
        outer: additional bytes for a parameter that is not in a matrix of a block: embedding,
            output layer, norms, biases.
        step: bytes of temporaries per parameter during a step, with `foreach`, which torch uses
            on CUDA.
    """

    state: float
    outer: int = 0
    step: int = 0


#: The optimizers of `recommend`.
OPTIMIZERS: dict[str, Optimizer] = {
    "adamw": Optimizer(8),
    "adam": Optimizer(8),
    "lamb": Optimizer(8),
    "lion": Optimizer(4),
    "adagrad": Optimizer(4, step=8),
    # with gradients of 16 bits: a momentum and its copy for the step; Adam for the rest
    "muon": Optimizer(4, outer=4),
    "sgd": Optimizer(0),
    "adafactor": Optimizer(4, step=4),
    # two values of a byte; of the paged one too, whose pages move to the host when a GPU is full
    "adamw8bit": Optimizer(2 + 2 * 4 / _BLOCK),
}
#: Other optimizers of torch that a config may contain.
_OTHERS: dict[str, Optimizer] = {
    "rmsprop": Optimizer(4, step=4),
    "adadelta": Optimizer(8, step=8),
    "adamax": Optimizer(8, step=4),
    "nadam": Optimizer(8, step=4),
    "radam": Optimizer(8, step=4),
}
_ADAM = Optimizer(8)


def is_known(kind: str) -> bool:
    """Whether the state of an optimizer in a config is counted."""
    return kind.lower() in OPTIMIZERS or kind.lower() in _OTHERS


def named(kind: str, params: Mapping[str, object] | None = None) -> Optimizer:
    """An optimizer by the `type` of a config, whatever its case; Adam where it is not known.

    Args:
        kind: `type`.
        params: `params`: momentum, `centered`, `amsgrad` and SGD's decay need more.
    """
    name = kind.lower()
    found = OPTIMIZERS.get(name) or _OTHERS.get(name) or _ADAM
    asked = params if isinstance(params, Mapping) else {}
    more = 0
    if name == "sgd" and asked.get("weight_decay"):  # added to a copy of the gradient
        found = dataclasses.replace(found, step=4)
    if name in ("sgd", "rmsprop"):
        more = 4 * bool(asked.get("momentum")) + 4 * bool(asked.get("centered"))
    elif name in ("adam", "adamw"):
        more = 4 * (asked.get("amsgrad") is True)
    return dataclasses.replace(found, state=found.state + more)


def state_bytes(model: ModelShape, trained: int, setting: Setting) -> float:
    """State of all ranks together, in addition to master weights.

    Muon's momentum is as wide as a gradient; ZeRO-3 keeps it once, and gathers it for the step in
    place of the copy.
    """
    if not setting.outer_bytes:
        return setting.state_bytes * trained
    outer = min(trained, setting.saved if setting.lora_rank else model.outer_parameters)
    matrices = setting.state_bytes * (setting.width / 2) * (trained - outer)
    return matrices + (setting.state_bytes + setting.outer_bytes) * outer
