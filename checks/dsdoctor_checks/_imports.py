"""How an import ended, in words."""

from __future__ import annotations

from dsdoctor.api import ImportOutcome


def how_it_ended(outcome: ImportOutcome) -> str:
    r"""The end of a sentence about an import that did not work.

    >>> how_it_ended(ImportOutcome(ok=False, error_type="ImportError", message="no x\nmore"))
    'fails with `ImportError: no x`'
    """
    words = (outcome.message or "").strip().splitlines()
    said = words[0] if words else "no message"
    if said.endswith(":") and len(words) > 1:  # of transformers' lazy modules
        said = f"{said} {words[1].strip()}"
    if outcome.error_type == "hang":
        return f"does not finish: {said}"
    if outcome.error_type in ("signal", "exit"):
        return f"is ended by {said}"
    return f"fails with `{outcome.error_type}: {said}`"
