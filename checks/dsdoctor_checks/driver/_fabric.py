"""Which machines have NVSwitches, and thus need the fabric manager."""

from __future__ import annotations

from dsdoctor.api import FabricManager, Gpu, Gpus, Missing, NotStated

from ..topology._tables import (  # noqa: TID252  # families of one pack share it
    DIRECT_BOARDS,
    SXM_LINKS,
    WHOLE_BOARD,
    product,
)

#: Pascal is older than NVSwitch.
_VOLTA = 7


def has_switches(manager: FabricManager, gpus: Gpus | Missing) -> bool:
    """Whether the driver exposes NVSwitches; of a paste that does not say so, by the products."""
    try:
        return manager.switches > 0
    except NotStated:
        return isinstance(gpus, Gpus) and on_switched_board(gpus.gpus)


def on_switched_board(gpus: tuple[Gpu, ...]) -> bool:
    """Whether GPUs are those of a whole board whose links lead to NVSwitches."""
    names = {product(gpu.name) for gpu in gpus}
    return (
        len(gpus) >= WHOLE_BOARD
        and len(names) == 1
        and names <= SXM_LINKS.keys()
        and all((gpu.cc_major or 0) >= _VOLTA for gpu in gpus)
        and not any(len(gpus) in DIRECT_BOARDS.get(name, ()) for name in names)
    )
