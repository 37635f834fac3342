"""`dsdoctor explain`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from dsdoctor.cli import loading
from dsdoctor.cli.options import language_option, reader_language, text_or_json
from dsdoctor.errors import UsageError

if TYPE_CHECKING:
    from dsdoctor import logs
    from dsdoctor.packs.registry import Registry, Unit

#: Answer to a text that is not part of any message, and whose words no condition mentions.
NO_MESSAGE = (
    "no known message contains this text, and no condition mentions its words; expected "
    "the text of an error, a condition or an id; for a whole log, run `dsdoctor diagnose LOG`"
)
#: Exceptions whose names the patterns of messages contain.
RAISED = ("ModuleNotFoundError", "ImportError", "RuntimeError", "ValueError", "OSError", "KeyError")
#: Releases that are listed one by one.
LISTED = 6
#: Columns of a page on a wider terminal.
WIDEST = 100
#: Who can fix a condition, by its scope.
_FIXED_BY = {
    "node": "fixed by whoever administers the machine",
    "user-env": "fixed in the environment of the job",
    "job": "fixed in the command, the config or the job script",
}
#: Printed above conditions that only share words with the query.
SIMILAR = (
    "no condition has this name and no known message contains this text; the closest conditions"
)


@click.command("explain")
@click.argument(
    "words",
    nargs=-1,
    metavar="[CONDITION|ID|MESSAGE]",
    shell_complete=lambda _context, _option, begun: [
        unit.condition.name
        for unit in loading.load_registry()
        if unit.condition.name.startswith(begun)
    ],
)
@text_or_json
@click.option(
    "--checks-dir", multiple=True, metavar="DIR", help="Directory with additional checks."
)
@language_option
def command(
    words: tuple[str, ...], form: str, checks_dir: tuple[str, ...], lang: str | None
) -> int:
    """Explain a condition or an error message, or list all conditions.

    MESSAGE is the text of an error as it appears in a log. Any other words or question list the
    conditions that mention most of its words.

    \b
    Examples:
      dsdoctor explain cuda-toolkit-mismatch
      dsdoctor explain "CUDA out of memory"
      dsdoctor explain nccl timeout
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    text = " ".join(words).strip()
    wanted = reader_language(lang)
    name: str | None = text
    if " " in text:
        known = knowledge(checks_dir)
        said = known.answer_text(text)
        if said is not None and said.known is None:
            loading.write(_for_reader(message_page(said)), None)
            return 0
        name = said.known.condition if said is not None and said.known else cause_of(text, known)
    registry = loading.load_registry(checks_dir)
    if not text:
        loading.write(listing(registry, form, wanted), None)
        return 0
    unit = None if name is None else registry.find(name)
    if unit is not None:
        text = as_json([unit]) if form == "json" else _for_reader(page(unit, wanted))
        loading.write(text, None)
        return 0
    loading.write(listing(similar(registry, text), form, wanted), None)
    return 0


def _for_reader(markdown: str) -> str:
    """A page, wrapped if it goes to a terminal."""
    from dsdoctor.report.wrap import terminal_columns  # noqa: PLC0415  # JSON needs none

    columns = terminal_columns(0)
    if not columns:
        return markdown
    from dsdoctor.report.reflow import reflow  # noqa: PLC0415  # only for a terminal

    return reflow(markdown, max(40, min(columns, WIDEST)))


def knowledge(checks_dir: Iterable[str]) -> logs.Knowledge:
    """What the packs know about logs; from the prepared file if possible, without loading them."""
    from dsdoctor import logs  # noqa: PLC0415  # the page of a condition needs no logs
    from dsdoctor.logs import prepared  # noqa: PLC0415

    known = prepared.knowledge(checks_dir)
    return known or logs.signatures_of(loading.load_registry(checks_dir))


def cause_of(message: str, known: logs.Knowledge) -> str | None:
    """The condition that `diagnose` finds in a log with only this message; None if none.

    Many type the message of an exception without its name.
    """
    from dsdoctor import logs  # noqa: PLC0415  # the page of a condition needs no logs

    for line in (message, *(f"{kind}: {message}" for kind in RAISED)):
        source = logs.Source("message", data=line.encode(errors="replace"))
        if causes := logs.diagnose([source], known).causes:
            return causes[0].condition
    return None


def similar(registry: Registry, text: str) -> list[Unit]:
    """Conditions that mention the words of a text; prints on stderr that these are search results.

    Raises:
        UsageError: none does.
    """
    from dsdoctor.reference import condition_search  # noqa: PLC0415  # where nothing has that name

    is_name = " " not in text  # part of a name, or a mistyped one
    found = condition_search.search(registry, text, every=is_name)
    if not found:
        if not is_name:
            raise UsageError(NO_MESSAGE)
        registry.get(text)  # says which name is closest
    click.echo(f"dsdoctor: {SIMILAR}:", err=True)
    return found


def message_page(said: logs.Answered) -> str:
    """What the error index says about a message, as Markdown."""
    from dsdoctor import logs  # noqa: PLC0415  # the page of a condition needs no logs
    from dsdoctor.logs.plain_errors import DISPLAYED  # noqa: PLC0415

    entry = said.entry
    rows = [
        f"# {DISPLAYED.get(entry.exception, entry.exception)} of {entry.product}",
        "",
        f"- raised by: `{entry.file}`, `{entry.function}`",
        f"- releases: {released(entry.releases)}",
        "",
        f"{logs.explained(said).text}.",
    ]
    if url := logs.explained(said).url:
        rows.append(f"Report it at {url}.")
    return "\n".join(rows) + "\n"


def released(releases: Sequence[str]) -> str:
    """Releases in one line.

    >>> released(["1.0", "1.1"]), released(["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "2.0"])
    ('1.0, 1.1', '1.0 to 2.0 (7 were read)')
    """
    if len(releases) > LISTED:
        return f"{releases[0]} to {releases[-1]} ({len(releases)} were read)"
    return ", ".join(releases)


def page(unit: Unit, lang: str | None = None) -> str:
    """A condition's page as Markdown.

    Args:
        unit: the condition.
        lang: language of its title and hint; None = English.
    """
    from dsdoctor.packs.registry import needs  # noqa: PLC0415  # a message needs no packs

    condition = unit.condition
    rows = [
        f"# {condition.name} ({condition.id})",
        "",
        *_head(unit, lang),
        "",
        f"- family: {unit.family}",
        f"- scope: {condition.scope.value} ({_FIXED_BY[condition.scope.value]})",
        f"- since: {condition.since}",
    ]
    if condition.formerly:
        rows.append(f"- formerly: {', '.join(f'`{name}`' for name in condition.formerly)}")
    if unit.check:
        facts = ", ".join(f"`{need.kind.__name__}`" for need in needs(unit.check.function))
        rows.append(f"- inputs: {facts}")
    rows.append(f"- recognized in logs: {'yes' if unit.signatures else 'no'}")
    for label, names in (("leads to", condition.leads_to), ("more specific", condition.narrower)):
        if names:
            rows.append(f"- {label}: {', '.join(f'`{other}`' for other in names)}")
    if condition.transient:
        rows.append(f"- a restart may help: {condition.transient}")
    if condition.fixes:
        commands = ", ".join(f"`dsdoctor fix {name}`" for name in condition.fixes)
        rows.append(f"- fix: {commands}")
    return "\n".join([*rows, "", unit.page]).rstrip() + "\n"


def _head(unit: Unit, lang: str | None) -> list[str]:
    """The title; in another language also the hint, which the page repeats in English below."""
    title, hint = translated(unit, unit.title, lang), translated(unit, unit.hint, lang)
    if title == unit.title:
        return [f"{title}."]
    return [f"{title}。", *(["", f"{hint}。"] if hint and hint != unit.hint else [])]


def translated(unit: Unit, text: str, lang: str | None) -> str:
    """A text of a condition in a language, in English if the catalogue does not contain it."""
    if lang is None:
        return text
    from dsdoctor import language  # noqa: PLC0415  # English needs no catalogue

    own = language.catalogue(lang)
    return (own.translate(unit.condition.name, text) if own else None) or text


def listing(units: Iterable[Unit], form: str, lang: str | None = None) -> str:
    """One line for each condition; a terminal gets lines of its width."""
    units = list(units)
    if form == "json":
        return as_json(units)
    from dsdoctor.report.wrap import listed  # noqa: PLC0415  # JSON needs none

    width = max(len(unit.condition.name) for unit in units)
    rows = (
        (
            f"{unit.condition.id:<8} {unit.condition.name:<{width}}  ",
            translated(unit, unit.title, lang),
        )
        for unit in units
    )
    return listed(rows, width + 30)


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
