"""What a text states, for the tests of its readers."""

from __future__ import annotations

from typing import Any

from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste.environment import environment_of


def stated(text: str) -> Snapshot:
    """The partial machine that a text states."""
    found = environment_of(text)
    assert found is not None
    return found


def value(snapshot: Snapshot, path: str) -> Any:
    """A field of it, by a path such as `gpus/gpus/0/name`."""
    place: Any = snapshot.facts
    for part in path.split("/"):
        place = place[int(part) if isinstance(place, list) else part]
    return place


def flat(found: Any, name: str = "") -> dict[str, Any]:
    """Every value of a document, by its path."""
    if isinstance(found, dict):
        return {k: v for key, one in found.items() for k, v in flat(one, f"{name}/{key}").items()}
    if isinstance(found, list):
        return {k: v for n, one in enumerate(found) for k, v in flat(one, f"{name}/{n}").items()}
    return {name: found}
