"""The tensors of a model by module, as ZeRO-3 gathers a module at once.

Standard library; Python 3.8 and later.
"""

from __future__ import annotations

from typing import Any

#: Dimensions of a tensor that contains the same matrix for all experts.
STACKED = 3


def modules_of(model: Any) -> dict[str, Any]:
    """The sizes of the tensors of each module that has any, in the order of the modules.

    `stacked` lists modules with a tensor for all experts, `shared` those with tensors of an earlier
    module.
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
