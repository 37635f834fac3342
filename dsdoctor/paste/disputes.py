"""What follows where two parts of a text state one field differently.

Most such texts are of two machines, of one machine before and after a change, or of two
environments. Only what does not depend on the field then stays known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dsdoctor.model.contradiction import Contradiction
from dsdoctor.model.partial import Source

#: A field, as the key of its fact and its dotted name below that.
Field = tuple[str, str]
#: Fields that identify a thing: what a text says about a driver 535 does not hold for the
#: driver 550 that it mentions as well. The key is the thing, about which nothing is known then.
_IDENTITY = re.compile(
    r"(?P<thing>(?:gpus|found|devices)\.\d+\.|cxx\.|cc\.|)"
    r"(?:version|driver_version|name|pci_bdf|uuid)$"
)
#: Facts about which nothing is known either if the fact in the key has lost its identity.
_BELONGS = {"torch_build": ("torch_live",)}
#: What says that a list is whole, in facts whose list is disputed.
_WHOLE = {"gpus": ("gpus[]", "stopped_at")}


def unknown(disputed: Iterable[Field], stated: Iterable[Field]) -> set[Field]:
    """The fields that count as unknown because others are disputed.

    >>> sorted(unknown([("nvml", "driver_version")], [("nvml", "error"), ("gpus", "count")]))
    [('nvml', 'driver_version'), ('nvml', 'error')]
    """
    lost = set(disputed)
    prefixes = {
        (fact, found["thing"])
        for fact, path in lost
        if (found := _IDENTITY.match(path)) is not None
    }
    prefixes |= {
        (other, "") for fact, thing in prefixes if not thing for other in _BELONGS.get(fact, ())
    }
    facts = {fact for fact, path in lost if path == "count" or _IDENTITY.match(path)}
    for fact, path in stated:
        below = any(fact == kind and path.startswith(thing) for kind, thing in prefixes)
        if below or (fact in facts and path in _WHOLE.get(fact, ())):
            lost.add((fact, path))
    return lost


def contradictions(
    disputed: Mapping[Field, tuple[tuple[Any, Source], tuple[Any, Source], int | None]],
) -> tuple[Contradiction, ...]:
    """The disputes for the reader, by line; for each thing only those about its identity, if any.

    Args:
        disputed: fields to their two values with places, and which of them is used.
    """
    things = {(fact, match["thing"]) for fact, path in disputed if (match := _IDENTITY.match(path))}
    found: list[Contradiction] = []
    for (fact, path), (one, other, used) in disputed.items():
        below = any(fact == kind and path.startswith(thing) for kind, thing in things)
        if below and not _IDENTITY.match(path):
            continue
        found.append(
            Contradiction(
                field=f"{fact}.{path}",
                values=(one[0], other[0]),
                places=(one[1], other[1]),
                used=used,
            )
        )
    return tuple(sorted(found, key=lambda each: (each.places[1].line, each.field)))
