"""`dsdoctor explain`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
import msgspec

from dsdoctor.cli import loading
from dsdoctor.cli.options import language_option, reader_language
from dsdoctor.errors import UsageError

if TYPE_CHECKING:
    from dsdoctor import logs
    from dsdoctor.registry import Registry, Unit

#: A text that is not one of the messages of the index.
NO_MESSAGE = (
    "no product of the error index raises this message; expected the text of an exception, "
    "a condition or an id; `dsdoctor diagnose LOG` reads a whole log"
)


@click.command("explain")
@click.argument("name", required=False, metavar="[CONDITION|ID|MESSAGE]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--checks-dir", multiple=True, metavar="DIR", help="Directory of additional checks.")
@language_option
def command(name: str | None, form: str, checks_dir: tuple[str, ...], lang: str | None) -> int:
    """Explain a condition or an error message, or list all conditions.

    A MESSAGE is the text of an exception that a product raises, in quotes.
    """
    if name is not None and " " in name.strip():
        said = answer_to(name, checks_dir)
        if said.known is None:
            loading.write(message_page(said), None)
            return 0
        name = said.known.condition
    registry = loading.load_registry(checks_dir)
    wanted = reader_language(lang)
    if name is None:
        loading.write(listing(registry, form, wanted), None)
        return 0
    unit = registry.get(name)
    loading.write(as_json([unit]) if form == "json" else page(unit, wanted), None)
    return 0


def answer_to(message: str, checks_dir: Iterable[str]) -> logs.Answered:
    """What the error index says of a message; UsageError where it says nothing."""
    from dsdoctor import logs  # noqa: PLC0415  # the page of a condition needs no logs
    from dsdoctor.logs import prepared  # noqa: PLC0415

    known = prepared.knowledge(checks_dir)
    if known is None:
        known = logs.signatures_of(loading.load_registry(checks_dir))
    said = known.answer_text(message)
    if said is None:
        raise UsageError(NO_MESSAGE)
    return said


def message_page(said: logs.Answered) -> str:
    """What the error index says of a message, as Markdown."""
    from dsdoctor import logs  # noqa: PLC0415

    entry = said.entry
    rows = [
        f"# {entry.exception} of {entry.product}",
        "",
        f"- raised by: `{entry.file}`, `{entry.function}`",
        f"- releases: {', '.join(entry.releases)}",
        "",
        f"{logs.explained(said).text}.",
    ]
    if url := logs.explained(said).url:
        rows.append(f"Report it at {url}.")
    return "\n".join(rows) + "\n"


def page(unit: Unit, lang: str | None = None) -> str:
    """A condition's page as Markdown.

    Args:
        unit: the condition.
        lang: of its title and its hint; None = English.
    """
    from dsdoctor.registry import needs  # noqa: PLC0415  # a message needs no packs

    condition = unit.condition
    rows = [
        f"# {condition.name} ({condition.id})",
        "",
        *_head(unit, lang),
        "",
        f"- family: {unit.family}",
        f"- fixed by: {condition.scope.value}",
        f"- since: {condition.since}",
    ]
    if condition.formerly:
        rows.append(f"- formerly: {', '.join(f'`{name}`' for name in condition.formerly)}")
    if unit.check:
        facts = ", ".join(f"`{need.kind.__name__}`" for need in needs(unit.check.function))
        rows.append(f"- inputs: {facts}")
    rows.append(f"- recognized in logs: {'yes' if unit.signatures else 'no'}")
    for label, names in (("leads to", condition.leads_to), ("narrower", condition.narrower)):
        if names:
            rows.append(f"- {label}: {', '.join(f'`{other}`' for other in names)}")
    if condition.transient:
        rows.append(f"- another start can help: {condition.transient}")
    if condition.fixes:
        commands = ", ".join(f"`dsdoctor fix {name}`" for name in condition.fixes)
        rows.append(f"- fix: {commands}")
    return "\n".join([*rows, "", unit.page]).rstrip() + "\n"


def _head(unit: Unit, lang: str | None) -> list[str]:
    """The title; in another language with what to do, which the page says in English below."""
    title, hint = translated(unit, unit.title, lang), translated(unit, unit.hint, lang)
    if title == unit.title:
        return [f"{title}."]
    return [f"{title}。", *(["", f"{hint}。"] if hint and hint != unit.hint else [])]


def translated(unit: Unit, text: str, lang: str | None) -> str:
    """A text of a condition in a language, in English where it is not in the catalogue."""
    if lang is None:
        return text
    from dsdoctor import language  # noqa: PLC0415  # English needs no catalogue

    own = language.catalogue(lang)
    return (own.translate(unit.condition.name, text) if own else None) or text


def listing(registry: Registry, form: str, lang: str | None = None) -> str:
    """All conditions, by id."""
    if form == "json":
        return as_json(list(registry))
    width = max(len(unit.condition.name) for unit in registry)
    return "".join(
        f"{unit.condition.id:<8} {unit.condition.name:<{width}}  "
        f"{translated(unit, unit.title, lang)}\n"
        for unit in registry
    )


def as_json(units: list[Unit]) -> str:
    """Conditions for programs."""
    rows = [
        {
            "id": unit.condition.id,
            "condition": unit.condition.name,
            "title": unit.title,
            "family": unit.family,
            "scope": unit.condition.scope.value,
            "since": unit.condition.since,
            "fixes": list(unit.condition.fixes),
            "has_check": unit.check is not None,
            "signatures": len(unit.signatures),
            "page": unit.page,
            **({"formerly": list(unit.condition.formerly)} if unit.condition.formerly else {}),
        }
        for unit in units
    ]
    document = {"schema": "dsdoctor/conditions", "version": 1, "conditions": rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
