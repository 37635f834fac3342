"""The tensors of a model, module by module: what ZeRO-3 gathers at once.

Standard library; Python 3.8 and later.
"""

from __future__ import annotations

from typing import Any

#: Dimensions of a tensor that holds the same matrix of all experts.
STACKED = 3


def modules_of(model: Any) -> dict[str, Any]:
    """Elements of the tensors of each module that has any, in the order of the modules.

    `stacked` are the modules with a tensor of all experts, `shared` those with the tensors of an
    earlier one.
    """
    rows = [list(module._parameters.values()) for module in model.modules()]
    rows = [[one for one in row if one is not None] for row in rows]
    rows = [row for row in rows if row]
    owners: dict[int, int] = {}
    shared = []
    for at, row in enumerate(rows):
        owner = owners.setdefault(id(row[0]), at)
        if owner != at and len(row) == len(rows[owner]):
            shared.append((at, owner))
    return {
        "modules": [[one.numel() for one in row] for row in rows],
        "stacked": [at for at, row in enumerate(rows) if any(one.dim() == STACKED for one in row)],
        "shared": shared,
    }
