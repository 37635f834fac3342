"""Facts of which only a part is known, so that no check mistakes a default for a measured value.

A paste states the version of the driver and not whether NVML answers; `Nvml(driver_version=…)`
would say `error=None`, "NVML answers". A partial fact is of the same class for `isinstance`, and
knows which of its fields were stated. What happens when a check reads another one:

- it raises `NotStated`, and the check is skipped with that reason (the rule);
- of the fields in `OPEN`, None or empty already means "not known": the check goes on, and what it
  then calls fine is skipped, since a pass means certainty. What it finds wrong stays;
- the fields in `SHOWN` are only shown to the reader (`path`, `uuid`) and change no verdict.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dsdoctor.model import decode
from dsdoctor.model.facts import gpu, machine, python, storage, toolchain
from dsdoctor.model.facts.base import Fact


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a field was stated.

    Attributes:
        reader: the format (`nvidia-smi`).
        line: number of the line, from 1.
        text: that line.
    """

    reader: str
    line: int
    text: str = ""


class NotStated(Exception):  # noqa: N818  # no error: a reason to judge nothing
    """A check read a field that was not stated."""


class Watch:
    """What one check read.

    Attributes:
        open: first field that is not known and that the check could do without; "" = none.
        sources: where what it read was stated, by dotted name.
    """

    def __init__(self) -> None:
        self.open = ""
        self.sources: dict[str, Source] = {}


_WATCH: contextvars.ContextVar[Watch | None] = contextvars.ContextVar("watch", default=None)


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Records what is read of partial facts within the block."""
    watch = Watch()
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        _WATCH.reset(token)


def _opened(name: str) -> None:
    watch = _WATCH.get()
    if watch is not None and not watch.open:
        watch.open = name


#: Class to fields whose default says "not known", and which a check may read without an answer.
#: Of the classes of `gpu.py` that is every field.
OPEN: dict[type, frozenset[str]] = {
    machine.OsInfo: frozenset({"machine", "libc", "container"}),
    machine.NvidiaKernel: frozenset({"module_version", "module_open"}),
    machine.PciGpu: frozenset({"driver"}),
    machine.Resources: frozenset({"memory_limit_bytes"}),
    machine.NvidiaSmi: frozenset(
        {"returncode", "gpus", "driver_version", "cuda_version", "cuda_missing"}
    ),
    gpu.Nvml: frozenset({"cuda_version", "slow_seconds", "driver_version"}),
    python.TorchBuild: frozenset({"nccl", "cudnn", "cuda_wheels"}),
    python.TorchLive: frozenset({"cuda_error", "cuda_error_code", "cxx11_abi"}),
    python.DeepSpeedInstall: frozenset(
        {"installed_ops", "built_for_torch", "built_for_cuda", "built_for_accelerator"}
    ),
    python.DeepSpeedLive: frozenset({"accelerator"}),
    python.Patient: frozenset({"implementation"}),
    toolchain.Compilers: frozenset({"ninja_in_env"}),
    toolchain.Toolkit: frozenset({"trial_ok", "trial_error", "error"}),
}
#: Class to fields that name or describe, and decide nothing.
SHOWN: dict[type, frozenset[str]] = {
    machine.OsInfo: frozenset({"hostname", "release", "distribution", "is_root"}),
    machine.NvidiaKernel: frozenset({"secure_boot", "uvm_hmm"}),
    machine.NvidiaSmi: frozenset({"path"}),
    storage.Place: frozenset({"variable", "path", "mount"}),
    machine.PciGpu: frozenset({"bdf", "device_id"}),
    gpu.Nvml: frozenset({"nvml_version", "unread"}),
    gpu.Gpu: frozenset({"uuid", "brand", "pci_bdf", "minor_number", "unread", "vbios"}),
    python.TorchBuild: frozenset({"path", "debug"}),
    python.TorchLive: frozenset(
        {"last_step", "arch_list", "arch_source", "nccl", "version", "file", "bf16_emulated"}
    ),
    python.DeepSpeedInstall: frozenset({"path"}),
    python.Patient: frozenset({"executable", "chosen_by"}),
    toolchain.CudaToolkits: frozenset({"how"}),
    toolchain.Toolkit: frozenset({"root", "source", "nvcc", "host_compiler"}),
    toolchain.Compiler: frozenset({"command"}),
}


class PartialTuple(tuple[Any, ...]):
    """Items of a list that may have more."""

    __slots__ = ()
    name = ""

    def __bool__(self) -> bool:
        """There is something: otherwise nothing would have been stated."""
        return True

    def __len__(self) -> int:
        raise NotStated(self.name)

    def __iter__(self) -> Iterator[Any]:
        _opened(self.name)
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except IndexError:
            raise NotStated(self.name) from None


class PartialDict(dict[str, Any]):
    """Entries of a mapping that may have more.

    Attributes:
        name: of the mapping, dotted.
        lenient: an entry that was not stated reads as absent, and leaves its mark.
        sources: where entries were stated.
    """

    def __init__(
        self, entries: Mapping[str, Any], name: str, sources: Mapping[str, Source], *, lenient: bool
    ) -> None:
        super().__init__(entries)
        self.name = name
        self.lenient = lenient
        self.sources = sources

    def _known(self, key: object) -> bool:
        there = super().__contains__(key)
        if there:
            _read(f"{self.name}.{key}", self.sources.get(str(key)))
        elif self.lenient:
            _opened(f"{self.name}.{key}")
        else:
            raise NotStated(f"{self.name}.{key}")
        return there

    def __contains__(self, key: object) -> bool:
        return self._known(key)

    def __getitem__(self, key: str) -> Any:
        self._known(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The entry, or what a missing one means here."""
        return super().__getitem__(key) if self._known(key) else default

    def __bool__(self) -> bool:
        if not super().__len__():
            raise NotStated(self.name)
        return True

    def __iter__(self) -> Iterator[str]:
        _opened(self.name)
        return super().__iter__()

    def keys(self) -> Any:
        """The keys that are known; there may be more."""
        _opened(self.name)
        return super().keys()

    def values(self) -> Any:
        """The values that are known; there may be more."""
        _opened(self.name)
        return super().values()

    def items(self) -> Any:
        """The entries that are known; there may be more."""
        _opened(self.name)
        return super().items()


def is_partial(entries: Mapping[str, Any]) -> bool:
    """Whether a mapping may have more entries than are known.

    A check that concludes something from the absence of one asks this first.
    """
    return isinstance(entries, PartialDict)


def _read(name: str, source: Source | None) -> None:
    watch = _WATCH.get()
    if watch is not None and source is not None:
        watch.sources.setdefault(name, source)


@functools.cache
def _open_fields(kind: Any) -> frozenset[str]:
    if kind.__module__ == gpu.__name__ and kind not in (gpu.Nvml, gpu.Gpus, gpu.GpuTopology):
        return frozenset(field.name for field in msgspec.structs.fields(kind))
    return OPEN.get(kind, frozenset())


def build(
    kind: type[Any], data: Mapping[str, Any], stated: Mapping[str, Source], name: str = ""
) -> Any:
    """A fact, or a part of one, with only some of its fields stated.

    Args:
        kind: its class.
        data: the fields that were stated, as JSON values.
        stated: dotted name of what was stated, below this fact, to where.
        name: key of the fact in a snapshot, for the reader.

    Raises:
        decode.DecodeError: a value is not of the field's type.
    """
    values: dict[str, Any] = {}
    gaps: set[str] = set()
    marks: dict[str, Source] = {}
    hints = typing.get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        below = f"{field.name}."
        inner = {key[len(below) :]: at for key, at in stated.items() if key.startswith(below)}
        if field.name in stated and not inner:
            values[field.name] = decode.convert(data[field.name], hints[field.name], strict=False)
            marks[field.name] = stated[field.name]
        elif inner:
            dotted = f"{name}.{field.name}"
            whole = field.name in stated
            value = data[field.name]
            values[field.name] = _part(hints[field.name], value, inner, dotted, whole=whole)
            if whole:
                marks[field.name] = stated[field.name]
        else:
            gaps.add(field.name)
            values[field.name] = _default(field)
    made = _partial_class(typing.cast("Any", kind))(**values)
    made.__dict__["_note"] = _Note(name or kind.key(), frozenset(gaps), marks)
    return made


class _Note(typing.NamedTuple):
    """What a partial struct knows of itself: its name, what is not stated, where the rest was."""

    name: str
    gaps: frozenset[str]
    marks: Mapping[str, Source]


def _part(hint: Any, value: Any, inner: Mapping[str, Source], name: str, *, whole: bool) -> Any:
    """A field with only parts stated: items of a list, entries of a mapping, a struct."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        hint = next(one for one in arguments if one is not types.NoneType)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        items = []
        for number, item in enumerate(value):
            below = f"{number}."
            at = {key[len(below) :]: mark for key, mark in inner.items() if key.startswith(below)}
            items.append(build(arguments[0], item, at, f"{name}.{number}"))
        if whole:
            return tuple(items)
        return _named_tuple(name)(items)
    if origin is dict:
        entries = {key: decode.convert(entry, arguments[1]) for key, entry in value.items()}
        return PartialDict(entries, name, inner, lenient=name.startswith("environment."))
    return build(hint, value, inner, name)


@functools.cache
def _named_tuple(name: str) -> type[PartialTuple]:
    return type("PartialTuple", (PartialTuple,), {"name": name, "__slots__": ()})


def _get(self: Any, attribute: str) -> Any:
    note = object.__getattribute__(self, "__dict__").get("_note")
    if note is not None and not attribute.startswith("_"):
        if attribute in note.gaps:
            kind = type(self).__mro__[1]
            if attribute in _open_fields(kind) and attribute not in SHOWN.get(kind, ()):
                _opened(f"{note.name}.{attribute}")
            elif attribute not in SHOWN.get(kind, ()):
                raise NotStated(f"{note.name}.{attribute}")
        elif attribute in note.marks:
            _read(f"{note.name}.{attribute}", note.marks[attribute])
    return object.__getattribute__(self, attribute)


@functools.cache
def _partial_class(kind: Any) -> Any:
    """A class of the same name that watches over what is read of it."""
    body = {"__getattribute__": _get, "__module__": __name__, "__doc__": kind.__doc__}
    options = {"frozen": True, "kw_only": True, "dict": True}
    made = types.new_class(kind.__name__, (kind,), options, lambda space: space.update(body))
    if issubclass(kind, Fact):
        made.key = kind.key  # type: ignore[attr-defined]  # a class made here
    return made


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return "" if field.type is str else None
