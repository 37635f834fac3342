"""State and temporaries of torch's optimizers on one flat tensor, as ZeRO gives it to them.

argv: a JSON file of {name: {"type", "params"}}; prints {name: [state, temporaries]}, bytes for each
element. `foreach` is what torch takes on CUDA.
"""

import json
import sys
from typing import Any

import torch
from storages import Made  # type: ignore[import-not-found]  # the script beside this one

ELEMENTS = 1 << 16


def one(kind: str, params: "dict[str, Any]") -> "list[float]":
    """The second step: state is made in the first."""
    parameter = torch.nn.Parameter(torch.zeros(ELEMENTS))
    optimizer = getattr(torch.optim, kind)([parameter], foreach=True, **params)
    for _ in range(2):
        parameter.grad = torch.ones(ELEMENTS)
        held = [value for value in optimizer.state[parameter].values() if torch.is_tensor(value)]
        with Made(but=[parameter, parameter.grad, *held]) as seen:
            optimizer.step()
    state = sum(tensor.nbytes for tensor in held if tensor.numel() > 1)
    return [state / ELEMENTS, round(seen.peak / ELEMENTS, 2)]


def main() -> None:
    """All in one process: importing torch takes longer."""
    with open(sys.argv[1], encoding="utf-8") as file:
        asked = json.load(file)
    print(json.dumps({name: one(case["type"], case["params"]) for name, case in asked.items()}))


main()
