"""Another machine, as input for `recommend`: from a snapshot, or described by its GPUs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dsdoctor import compose
from dsdoctor.job.request import parse_gpus
from dsdoctor.model import decode
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.recommend.machine import Machine, machine_from

_NOT_STATED = Missing(why=Why.NOT_ASKED, detail="not known for a machine of `--like`")


def saved(snapshot: Snapshot, gpus: Sequence[str] | None = None) -> Machine:
    """The machine of a snapshot, with all of its GPUs: the variables of a job there are not known.

    Args:
        snapshot: what was read there.
        gpus: selectors of `--gpus`; None = all.

    Raises:
        UsageError: a selector is not one, or its GPU does not exist or was not read.
    """
    found = machine_from(
        snapshot.get(Gpus),
        snapshot.get(Resources),
        RunNeeds(gpus=parse_gpus(gpus)),
        snapshot.get(OsInfo),
    )
    note = f"another machine, as it was on {snapshot.created[:10]}"
    return dataclasses.replace(found, notes=(note, *found.notes))


def like(text: str) -> Machine:
    """A machine with a number of GPUs of a product; its CPUs and host memory are not known.

    Args:
        text: `8xH100-SXM`.

    Raises:
        UsageError: the product is not known.
    """
    snapshot = compose.machine_like(text, None)
    # every field that planning needs is set, so the fact is not decoded as a partial one
    gpus = decode.convert(snapshot.facts[Gpus.key()], Gpus, strict=False)
    found = machine_from(gpus, _NOT_STATED, RunNeeds(), _NOT_STATED)
    notes = tuple(
        "all memory of its GPUs is assumed to be free" if text == compose.FREE else text
        for text in snapshot.assumed
    )
    return dataclasses.replace(found, host_bytes=None, notes=notes)
