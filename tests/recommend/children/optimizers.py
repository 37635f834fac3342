"""State and temporaries of torch's optimizers on one flat tensor, as ZeRO gives it to them.

argv: a JSON file of {name: {"type", "params"}}; prints {name: [state, temporaries]}, bytes for each
element. `foreach` is what torch takes on CUDA.
"""

import json
import sys
import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ELEMENTS = 1 << 16


class Peak(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """The most bytes of storages that operators have made at any moment."""

    def __init__(self, known: "set[int]") -> None:
        super().__init__()
        self.known = known
        self.bytes = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Counts a storage when it is seen first, and its end."""
        made = func(*args, **(kwargs or {}))
        for thing in tree_leaves(made):
            if isinstance(thing, torch.Tensor):
                storage = thing.untyped_storage()
                if storage._cdata not in self.known:
                    self.known.add(storage._cdata)
                    self.bytes += storage.nbytes()
                    self.peak = max(self.peak, self.bytes)
                    weakref.finalize(storage, self.gone, storage._cdata, storage.nbytes())
        return made

    def gone(self, key: int, size: int) -> None:
        """Nothing holds this storage any longer."""
        self.bytes -= size
        self.known.discard(key)


def one(kind: str, params: "dict[str, Any]") -> "list[float]":
    """The second step: state is made in the first."""
    parameter = torch.nn.Parameter(torch.zeros(ELEMENTS))
    optimizer = getattr(torch.optim, kind)([parameter], foreach=True, **params)
    for _ in range(2):
        parameter.grad = torch.ones(ELEMENTS)
        held = [value for value in optimizer.state[parameter].values() if torch.is_tensor(value)]
        own = [parameter, parameter.grad, *held]
        with Peak({tensor.untyped_storage()._cdata for tensor in own}) as seen:
            optimizer.step()
    state = sum(tensor.nbytes for tensor in held if tensor.numel() > 1)
    return [state / ELEMENTS, round(seen.peak / ELEMENTS, 2)]


def main() -> None:
    """All in one process: importing torch takes longer."""
    with open(sys.argv[1], encoding="utf-8") as file:
        asked = json.load(file)
    print(json.dumps({name: one(case["type"], case["params"]) for name, case in asked.items()}))


main()
