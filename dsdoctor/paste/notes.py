"""Notes in a report on pasted text, for example about contradictions in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsdoctor.model.contradiction import Contradiction
from dsdoctor.model.facts.base import Fact, Why
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.python import TorchLive
from dsdoctor.model.finding import Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot

#: What users call a field, by its dotted name.
_CALLED = {
    "nvml.driver_version": "driver",
    "nvidia_kernel.module_version": "kernel module",
    "nvml.cuda_version": "CUDA version of the driver",
    "nvidia_smi.error": "error of `nvidia-smi`",
    "torch_build.version": "torch",
    "torch_build.cuda": "CUDA version of torch",
    "torch_live.cuda_ok": "`torch.cuda.is_available()`",
    "patient.version": "Python",
    "deep_speed_install.version": "DeepSpeed",
    "cuda_toolkits.found.0.version": "nvcc",
    "compilers.cxx.version": "gcc",
    "gpus.count": "number of GPUs",
}
#: Fields that are not reported: they follow from others, or say where a value was found.
_DERIVED = frozenset(
    {
        "cc_major",
        "cc_minor",
        "chosen",
        "stopped_at",
        "error",
        "command",
        "kind",
        "hip",
        "nvcc",
        "index",
    }
)
#: Most contradictions that are listed; more only show that the text is about several machines.
_MOST = 4


def paste_notes(report: Report, snapshot: Snapshot) -> list[str]:
    """The notes of a report on a paste."""
    return [
        *_contradicted(snapshot.contradictions),
        *_without_cuda(report, snapshot),
        *_undecided(snapshot),
        *snapshot.noticed,
    ]


#: Facts of the job of which a text may have several, and what selects one.
_SELECTED: dict[type[Fact], str] = {LaunchCommand: "-- CMD", DsConfig: "--config FILE"}


def _undecided(snapshot: Snapshot) -> Iterator[str]:
    """Commands or configs of which nothing says which is the job's."""
    for kind, option in _SELECTED.items():
        missing = snapshot.missing.get(kind.key())
        if missing is not None and missing.why is Why.UNSUPPORTED:
            yield f"{missing.detail}; to judge one of them, add `{option}`"


def _without_cuda(report: Report, snapshot: Snapshot) -> Iterator[str]:
    """What torch reports about CUDA, if no check could judge it."""
    stated = snapshot.sources.get(TorchLive.key(), {}).get("cuda_ok")
    seen = snapshot.facts.get(TorchLive.key(), {}).get("cuda_ok")
    said = any(finding.status in (Status.WARN, Status.FAIL) for finding in report.findings)
    if stated is not None and seen is False and not said:
        yield (
            f"torch finds no CUDA device (line {stated.line}); whether the machine has one is not "
            "known"
        )


def _contradicted(found: Iterable[Contradiction]) -> list[str]:
    """Contradictions of a paste, one sentence each."""
    texts: dict[tuple[str, frozenset[str]], str] = {}
    for each in found:
        name = _called(each.field)
        one, other = (_value(value) for value in each.values)
        here, there = (place.line for place in each.places)
        if name is None or one == other:
            continue
        key = (name, frozenset((one, other)))
        if each.used is not None:  # a more reliable source overrides a list of packages
            texts[key] = (
                f"{name} is {one} in line {here}, which is used, and {other} in line {there}"
            )
        else:
            text = f"{name} is {one} in line {here} and {other} in line {there}: not known"
            texts.setdefault(key, text)
    said = list(texts.values())
    more = len(said) - _MOST
    shown = said[:_MOST] + ([f"{more} more values"] if more > 0 else [])
    return [f"the paste contradicts itself: {text}" for text in shown]


def _called(field: str) -> str | None:
    """What users call a field; None for one that only follows from others."""
    if field in _CALLED:
        return _CALLED[field]
    fact, _, path = field.partition(".")
    item, _, last = path.rpartition(".")
    if fact == "gpus" and last == "name":
        return f"GPU {item.partition('.')[2]}"
    if fact == "packages":
        return path.partition(".")[2]
    return None if path.endswith("[]") or last in _DERIVED else f"`{field}`"


def _value(value: object) -> str:
    """A value as tools print it."""
    if isinstance(value, dict):
        return str(value.get("version", value))
    text = "none" if value is None else str(value)
    return f"`{text}`" if " " in text else text
