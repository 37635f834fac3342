"""What remains known if two parts of a text state one field differently.

Most such texts are about two machines, about one machine before and after a change, or about two
environments. Only fields that do not depend on the disputed one remain known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dsdoctor.model.contradiction import Contradiction
from dsdoctor.model.partial import Source

#: A field, as the key of its fact and its dotted name below that.
Field = tuple[str, str]
#: Fields that identify a thing: what a text says about driver 535 does not apply to the driver 550
#: that it also mentions. If one is disputed, nothing is known about the thing (the key).
_IDENTITY = re.compile(
    r"(?P<thing>(?:gpus|found|devices)\.\d+\.|cxx\.|cc\.|)"
    r"(?:version|driver_version|name|pci_bdf|uuid)$"
)
#: Facts that become unknown too if the identity of the fact in the key is disputed.
_BELONGS = {"torch_build": ("torch_live",)}
#: Fields that say that a list is complete, in facts whose list is disputed.
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
    """The disputes to report, by line; for each thing only those about its identity, if any.

    Args:
        disputed: maps fields to their two values with places, and which of them is used.
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
