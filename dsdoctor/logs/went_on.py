"""Failures after which a script goes on, such as that of `module load`, or what one prints."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.logs.candidates import Candidate
from dsdoctor.logs.errors import Error


def went_on(candidate: Candidate) -> bool:
    """Whether it is a command before the run that failed, after which the script went on."""
    on = [hit.known.signature.goes_on for hit in candidate.hits]
    return any(on) and all(hit.warned or told for hit, told in zip(candidate.hits, on, strict=True))


def sets_up(candidate: Candidate, victim: Candidate) -> bool:
    """Whether such a command would have set up what a later failure lacks."""
    return victim.name in candidate.masks and candidate.first < victim.first and went_on(candidate)


def without_idle(candidates: list[Candidate], error: Error | None) -> list[Candidate]:
    """The candidates without such commands, unless they explain another, or nothing else failed."""
    idle = [one for one in candidates if went_on(one) and not _explains_any(one, candidates)]
    kept = [one for one in candidates if one not in idle]
    return kept if kept or error is not None else candidates


def _explains_any(candidate: Candidate, candidates: Sequence[Candidate]) -> bool:
    return any(
        sets_up(candidate, one) and not _explained_otherwise(one, candidates) for one in candidates
    )


def _explained_otherwise(victim: Candidate, candidates: Sequence[Candidate]) -> bool:
    """Whether another failure explains a victim: it came first, or words its lines more exactly."""
    lines = {(hit.source, hit.line) for hit in victim.hits}
    return any(
        one.first < victim.first
        or (
            victim.name in one.masks
            and one.level >= victim.level
            and lines <= {(hit.source, hit.line) for hit in one.hits}
        )
        for one in candidates
        if not went_on(one)
    )
