"""What a third party's pack may call its units.

A pack called `acme` calls its conditions and fixes `acme-…`, numbers its conditions from `ACME001`,
and calls its facts `Acme…`, so that no two packs clash by accident. Only the built-in pack uses
names without a prefix and the letters `DSD`.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from dsdoctor.model.facts.base import Fact
from dsdoctor.packs.places import BUILTIN
from dsdoctor.packs.registry import Pack

RESERVED = frozenset({BUILTIN, "dsd", "dsdoctor"})


def prefix_of_file(path: PurePath) -> str:
    """The prefix of a file of a checks.d folder: its name up to the first underscore.

    >>> prefix_of_file(PurePath("/etc/dsdoctor/checks.d/acme_scratch_full.py"))
    'acme'
    """
    return path.stem.partition("_")[0]


def prefix_problem(prefix: str) -> str | None:
    """Why a pack cannot have this prefix; None if it can."""
    if prefix in RESERVED:
        return f"the prefix `{prefix}` is reserved for dsdoctor; choose another"
    if not re.fullmatch(r"[a-z]([a-z0-9]*[a-z])?(-[a-z]([a-z0-9]*[a-z])?)*", prefix):
        return (
            f"`{prefix}` cannot be the prefix of a pack; expected lowercase letters, with "
            "digits between letters and hyphens between words"
        )
    return None


def letters_of(prefix: str) -> str:
    """The letters with which the ids of a pack begin.

    >>> letters_of("acme-gpu")
    'ACMEGPU'
    """
    return prefix.replace("-", "").upper()


def class_prefix_of(prefix: str) -> str:
    """The word with which the fact classes of a pack begin.

    >>> class_prefix_of("acme-gpu")
    'AcmeGpu'
    """
    return "".join(word.capitalize() for word in prefix.split("-"))


def name_problem(pack: Pack, prefix: str) -> str | None:
    """The first name of a pack without the pack's prefix; None if all have it."""
    wrong = prefix_problem(prefix)
    if wrong:
        return wrong
    letters, start = letters_of(prefix), class_prefix_of(prefix)
    for unit in pack.units:
        condition = unit.condition
        if not condition.name.startswith(f"{prefix}-"):
            return f"condition `{condition.name}` ({unit.place}) must be called `{prefix}-…`"
        if not re.fullmatch(rf"{letters}\d{{3,4}}", condition.id):
            return (
                f"id `{condition.id}` of `{condition.name}` ({unit.place}) must be `{letters}` "
                "and three or four digits"
            )
    for fix in (unit.fix for unit in pack.fixes):
        if not fix.name.startswith(f"{prefix}-"):
            return f"fix `{fix.name}` ({fix.function.__module__}) must be called `{prefix}-…`"
    for kind in pack.facts:
        if not re.match(rf"{start}[A-Z0-9]", kind.__name__):
            return (
                f"fact `{kind.__name__}` ({kind.__module__}) must be called `{start}…`"
                f"{_same_key(kind)}"
            )
    return None


def _same_key(kind: type[Fact]) -> str:
    for other in Fact.__subclasses__():
        if other.key() == kind.key() and other.__module__.startswith("dsdoctor."):
            return f"; `{kind.key()}` is a fact of `{other.__module__}`"
    return ""
