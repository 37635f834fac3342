"""What has changed between two collections of the same nodes' traits. Pure."""

from __future__ import annotations

from dsdoctor.fleet import names


def compare(
    before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]
) -> list[dict[str, str]]:
    """Traits that changed, the nodes of the same change together."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            change = ("report", "there" if old is not None else "not there", "not there")
            rows.setdefault(change if new is None else ("report", "not there", "there"), []).append(
                name
            )
            continue
        for trait in dict.fromkeys([*old, *new]):
            left, right = old.get(trait, "not there"), new.get(trait, "not there")
            if left != right:
                rows.setdefault((trait, left, right), []).append(name)
    return [
        {"nodes": names.fold(who) or "node", "trait": trait, "before": left, "after": right}
        for (trait, left, right), who in rows.items()
    ]
