"""Describes the facts: their fields, types and units, and the probes that read them.

Meanings and units come from the docstrings of the fact classes.
"""

from __future__ import annotations

import difflib
import html
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterable

import msgspec

from dsdoctor import probes as engine_probes
from dsdoctor.errors import UsageError
from dsdoctor.fixes import probes as fix_probes
from dsdoctor.model import facts as fact_modules
from dsdoctor.model.facts.base import Fact
from dsdoctor.packs.registry import Registry, gives

#: A constraint on a type, which is not shown.
_ANNOTATED = re.compile(r"Annotated\[(.+), msgspec\.Meta\([^()]*\)\]")


class FieldPage(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a fact.

    Attributes:
        name: of the field.
        type: its annotation.
        default: its default as JSON; None if it has none.
        meaning: what it is, with its unit.
    """

    name: str
    type: str
    default: str | None
    meaning: str


class StructPage(msgspec.Struct, frozen=True, kw_only=True):
    """A structure that is part of a fact.

    Attributes:
        name: of its class.
        title: what it is.
        fields: in the order of the class.
    """

    name: str
    title: str
    fields: tuple[FieldPage, ...]


class FactPage(msgspec.Struct, frozen=True, kw_only=True):
    """The description of one fact.

    Attributes:
        key: its name in snapshots and tests.
        name: of its class, as in the annotations of checks.
        module: where the class is defined.
        title: what it is.
        probe: the function that reads it; None if it is not read from the machine.
        fields: in the order of the class.
        parts: structures that its fields are made of.
    """

    key: str
    name: str
    module: str
    title: str
    probe: str | None
    fields: tuple[FieldPage, ...]
    parts: tuple[StructPage, ...]


def pages(registry: Registry) -> tuple[FactPage, ...]:
    """Every fact of dsdoctor and of the loaded packs, sorted by key."""
    for entry in pkgutil.iter_modules(fact_modules.__path__):
        importlib.import_module(f"{fact_modules.__name__}.{entry.name}")
    kinds = [
        kind for kind in Fact.__subclasses__() if kind.__module__.startswith("dsdoctor.model.")
    ]
    kinds += [kind for pack in registry.packs for kind in pack.facts]
    readers = {
        kind: f"{probe.function.__module__}.{probe.function.__name__}"
        for probe in (*engine_probes.builtin(), *fix_probes.probes(), *registry.probes)
        for kind in gives(probe.function)
    }
    return tuple(
        _page(kind, readers.get(kind)) for kind in sorted(set(kinds), key=lambda kind: kind.key())
    )


def find(made: Iterable[FactPage], name: str) -> FactPage:
    """The fact with a key or class name.

    Raises:
        UsageError: there is none; the text suggests the closest.
    """
    known = {page.key: page for page in made}
    for page in known.values():
        if name in (page.key, page.name):
            return page
    names = [*known, *(page.name for page in known.values())]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    raise UsageError(
        f"no fact is called `{name}`"
        + (f", the closest is `{near[0]}`" if near else "")
        + "; `dsdoctor facts` lists all"
    )


def listing(made: Iterable[FactPage]) -> str:
    """One line for each fact."""
    rows = list(made)
    width = max((len(page.key) for page in rows), default=0)
    return "".join(f"{page.key:<{width}}  {page.title}\n" for page in rows)


def markdown(page: FactPage, level: int = 1, *, escaped: bool = True) -> str:
    """A fact as a page, or as a section with a heading of this level.

    Args:
        page: the fact.
        level: of its heading.
        escaped: as a renderer of tables needs it; a terminal shows what it is given.
    """
    mark = "#" * level
    source = f"read by the probe `{page.probe}`" if page.probe else "supplied by the command itself"
    parts = [
        f"{mark} `{page.key}`",
        f"{page.title}.",
        f"Class `{page.name}` of `{page.module}`, {source}.",
        _table(page.fields, escaped=escaped),
    ]
    for part in page.parts:
        heading = f"{mark}# `{part.name}` in `{page.key}`"
        parts += [heading, f"{part.title}.", _table(part.fields, escaped=escaped)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(fields: Iterable[FieldPage], *, escaped: bool) -> str:
    rows = [
        f"| `{field.name}` | {_code(field.type)} | {_cell(field.meaning)} |"
        if escaped
        else f"| `{field.name}` | `{field.type}` | {field.meaning} |"
        for field in fields
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows]) if rows else ""


def _code(text: str) -> str:
    """Code within a table; a bar ends the cell on one site, and shows its escape on another."""
    if "|" not in text:
        return f"`{text}`"
    return f"<code>{html.escape(text).replace('|', '&#124;')}</code>"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(kind: type[Fact], probe: str | None) -> FactPage:
    parts: dict[type[msgspec.Struct], None] = {}
    _nested(kind, parts)
    return FactPage(
        key=kind.key(),
        name=kind.__name__,
        module=kind.__module__,
        title=_title(kind),
        probe=probe,
        fields=_fields(kind),
        parts=tuple(
            StructPage(name=part.__name__, title=_title(part), fields=_fields(part))
            for part in parts
        ),
    )


def _nested(kind: type[msgspec.Struct], found: dict[type[msgspec.Struct], None]) -> None:
    for hint in typing.get_type_hints(kind).values():
        for part in _structs(hint):
            if part not in found:
                found[part] = None
                _nested(part, found)


def _structs(hint: object) -> list[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [part for inner in typing.get_args(hint) for part in _structs(inner)]


def _title(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ").rstrip(".")


def _fields(kind: type[msgspec.Struct]) -> tuple[FieldPage, ...]:
    meanings = field_meanings(kind)
    return tuple(
        FieldPage(
            name=field.name,
            type=_words(kind, field.name),
            default=_default(field),
            meaning=meanings.get(field.name, ""),
        )
        for field in msgspec.structs.fields(kind)
    )


def _words(kind: type[msgspec.Struct], name: str) -> str:
    for base in kind.__mro__:
        text = vars(base).get("__annotations__", {}).get(name)
        if text is not None:
            text = text if isinstance(text, str) else inspect.formatannotation(text)
            return _ANNOTATED.sub(r"\1", text)
    return ""


def _default(field: msgspec.structs.FieldInfo) -> str | None:
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT or value is msgspec.UNSET:
        return None
    return msgspec.json.encode(value).decode()


def field_meanings(kind: type) -> dict[str, str]:
    """Field to meaning, from the section `Attributes:` of a docstring."""
    text = inspect.cleandoc(kind.__doc__ or "")
    _, _, section = text.partition("\nAttributes:\n")
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", section.partition("\n\n")[0]):
        names, _, meaning = " ".join(entry.split()).partition(": ")
        for name in names.split(","):
            found[name.strip()] = meaning.rstrip(".")
    return found
