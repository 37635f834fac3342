"""Writes the generated pages: conditions, errors by product, command line, man page, JSON Schemas.

The report in the READMEs is that of `tests/golden`.

`python docs/generate.py --check` exits 1, names the pages that have drifted and shows how.
"""

from __future__ import annotations

import difflib
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import manual
import msgspec

from dsdoctor import packs
from dsdoctor.cli.explain import page
from dsdoctor.cli.main import group
from dsdoctor.hook import install
from dsdoctor.logs import error_index, error_keys, error_lookup, prepared
from dsdoctor.logs.knowledge import stated_by
from dsdoctor.logs.necessary import derived
from dsdoctor.logs.products import products_in
from dsdoctor.model.condition import Limits
from dsdoctor.model.schema import (
    launch_schema,
    plan_schema,
    report_schema,
    run_diff_schema,
    run_schema,
    smoke_schema,
    snapshot_schema,
)
from dsdoctor.packs.registry import Registry, Unit, needs
from dsdoctor.reference import error_pages, fact_pages

ROOT = Path(__file__).parent
REPOSITORY = ROOT.parent
PACK = REPOSITORY / "checks" / "dsdoctor_checks"
#: Not a page: a stale one costs time and changes no answer, so it may drift a little.
LITERALS = PACK / prepared.LITERALS
#: Installed by the wheel, see `shared-data` in pyproject.toml.
MAN = ROOT / "man" / "dsdoctor.1"
#: Folders that hold nothing but generated pages.
GENERATED = ("docs/conditions/", "docs/errors/")
FORMAT: dict[str, Any] = {"terminal_width": 80, "help_option_names": ["-h", "--help"]}


def pages() -> dict[Path, str]:
    """All generated files with their content."""
    registry = packs.load(builtin_only=True)
    made: dict[Path, str] = {
        ROOT / "cli.md": command_line(),
        MAN: manual.render(group, FORMAT),
        ROOT / "facts.md": facts(registry),
        ROOT / "limits.md": limits(registry),
        ROOT / "schema" / "snapshot.json": snapshot_schema(),
        ROOT / "schema" / "report.json": report_schema(),
        ROOT / "schema" / "smoke.json": smoke_schema(),
        ROOT / "schema" / "launch.json": launch_schema(),
        ROOT / "schema" / "plan.json": plan_schema(),
        ROOT / "schema" / "run.json": run_schema(),
        ROOT / "schema" / "run-diff.json": run_diff_schema(),
    }
    rows = ["# Conditions", "", "| id | condition | problem |", "|---|---|---|"]
    for unit in registry:
        name = unit.condition.name
        made[ROOT / "conditions" / f"{name}.md"] = page(unit) + messages(unit)
        rows.append(f"| {unit.condition.id} | [{name}]({name}.md) | {unit.title} |")
    made[ROOT / "conditions" / "README.md"] = "\n".join(rows) + "\n"
    for file, text in error_pages.pages(PACK / prepared.ERROR_INDEX).items():
        made[ROOT / "errors" / file] = text
    manifests = install.InstallOptions(into=ROOT / "kubernetes", python="python3")
    files = install.plan("kubernetes", manifests).files
    return made | {path: text for path, (text, _) in files.items()} | readmes()


def readmes() -> dict[Path, str]:
    """Both READMEs, with the report on a machine whose driver is too old as it is printed now."""
    report = (REPOSITORY / "tests" / "golden" / "driver-too-old.txt").read_text(encoding="utf-8")
    made = {}
    for path in (REPOSITORY / "README.md", REPOSITORY / "README.zh-CN.md"):
        before, fence, rest = path.read_text(encoding="utf-8").partition("```text\n")
        made[path] = f"{before}{fence}{report}{rest[rest.index('```') :]}"
    return made


def messages(unit: Unit) -> str:
    """Lines of logs by which a condition is recognized, for people who search for one of them."""
    rows = dict.fromkeys(
        " ".join(example.split()) for one in unit.signatures for example in one.examples
    )
    if not rows:
        return ""
    return "\n".join(["\n## Messages", "It is recognized by lines such as these:\n",
                      "```text", *rows, "```", ""])  # fmt: skip


def literals(registry: Registry) -> str:
    """The literals that logs are searched for, by pattern, so no start has to derive them."""
    signed = {one.pattern for unit in registry for one in unit.signatures}
    sentences = {one.pattern for pack in registry.packs for one in pack.boilerplate}
    patterns = sorted(signed | sentences)
    rows = {pattern: derived(pattern) for pattern in patterns}
    return json.dumps(rows, indent=0, ensure_ascii=False) + "\n"


def marks() -> str:
    """By which words the products of the error index are found, so that not all are read."""
    folder = PACK / prepared.ERROR_INDEX
    found = {name: error_index.load(folder, name) for name in error_lookup.products(folder)}
    return error_keys.render(
        {name: filter(None, (one.mark for one in index.entries)) for name, index in found.items()}
    )


def knowledge(registry: Registry) -> bytes:
    """What the built-in pack knows of logs, so that a short log need not load its modules."""
    (pack,) = registry.packs
    stated = {f"{unit.place.partition('.')[2].replace('.', '/')}.py": unit for unit in pack.units}
    rows = []
    for file in prepared.modules(PACK):
        source = (PACK / file).read_bytes()
        unit = stated.get(file)
        said = stated_by(unit) if unit is not None else None
        if said is not None:  # examples and most of a source are for tests and for pages
            said = said._replace(
                signatures=tuple(
                    msgspec.structs.replace(
                        s,
                        examples=(),
                        not_examples=(),
                        source=" ".join(sorted(products_in(s.source))),
                    )
                    for s in said.signatures
                ),
                rules=tuple(
                    msgspec.structs.replace(rule, example="", source="") for rule in said.rules
                ),
            )
        sentences = pack.boilerplate if file == "boilerplate.py" else ()
        rows.append(prepared.Row(file, len(source), zlib.crc32(source), said, tuple(sentences)))
    return prepared.render(rows)


def facts(registry: Registry) -> str:
    """Every fact with its fields."""
    head = (
        "# Facts\n\n"
        "What probes read and checks judge. A check asks for a fact by its class, as in\n"
        "`def check(torch: TorchBuild | Missing)`; snapshots and tests name it by its key.\n"
        "Generated from the docstrings; `dsdoctor facts` prints the same, with the facts of the\n"
        "packs that are installed.\n"
    )
    return "\n".join([head, *(fact_pages.markdown(one, 2) for one in fact_pages.pages(registry))])


def limits(registry: Registry) -> str:
    """Every threshold that a configuration can change."""
    lines = [
        "# Limits",
        "",
        "Thresholds of checks. Change one in the table of its condition in `config.toml`; see",
        "[Configuration](configuration.md). Generated from the checks.",
        "",
        "| condition | limit | default | meaning |",
        "|---|---|---|---|",
    ]
    for unit in registry:
        if unit.check is None:
            continue
        name = unit.condition.name
        for kind in (need.kind for need in needs(unit.check.function)):
            if not issubclass(kind, Limits):
                continue
            words = limit_meanings(kind)
            lines += [
                f"| [{name}](conditions/{name}.md) | `{field.name}` | {field.default:g}"
                f" | {words.get(field.name, '').rstrip('.')} |"
                for field in msgspec.structs.fields(kind)
            ]
    return "\n".join(lines) + "\n"


def limit_meanings(kind: type[Limits]) -> dict[str, str]:
    """Limit to meaning; a class with one limit may say it in its first line."""
    words = fact_pages.field_meanings(kind)
    (first, *others) = kind.__struct_fields__
    title = " ".join((kind.__doc__ or "").split()).rstrip(".")
    title = title.removeprefix("Attributes: ").removeprefix(f"{first}: ")
    return words if any(words) else ({} if others else {first: title})


def command_line() -> str:
    """The help of every command, as a terminal of 80 columns shows it."""
    parts = [
        "# The command line",
        "Generated from the program's own help. The wheel installs it as a man page too.",
        *_helps(group, click.Context(group, info_name="dsdoctor", **FORMAT)),
    ]
    return "\n\n".join(parts) + "\n"


def _helps(command: click.Command, context: click.Context) -> Iterator[str]:
    name = context.command_path
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield f"## `{name}`\n\n```text\n{text}\n```"
    if not isinstance(command, click.Group):
        return
    for word in command.list_commands(context):
        inner = command.get_command(context, word)
        if inner is not None and not inner.hidden:
            yield from _helps(inner, click.Context(inner, context, word, **FORMAT))


def drifted() -> list[str]:
    """Pages that are out of date, and pages of conditions that no longer exist."""
    made = pages()
    wrong = [
        path.relative_to(REPOSITORY).as_posix()
        for path, text in made.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    there = {path for name in GENERATED for path in (REPOSITORY / name).glob("*.md")}
    gone = there - made.keys()
    return sorted([*wrong, *(path.relative_to(REPOSITORY).as_posix() for path in gone)])


def main() -> int:
    """Writes or checks; returns the exit status."""
    if "--check" in sys.argv[1:]:
        wrong = drifted()
        made = pages()
        for name in wrong:
            print(f"{name} has drifted; run `python docs/generate.py`")
            path = REPOSITORY / name
            old = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
            new = made.get(path, "").splitlines()
            print(*difflib.unified_diff(old, new, "as it is", "as made", lineterm=""), sep="\n")
        return 1 if wrong else 0
    for name in drifted():
        if name.startswith(GENERATED):
            (REPOSITORY / name).unlink(missing_ok=True)
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    registry = packs.load(builtin_only=True)
    LITERALS.write_text(literals(registry), encoding="utf-8")
    (PACK / prepared.ERROR_INDEX / error_keys.FILE).write_text(marks(), encoding="utf-8")
    (PACK / prepared.FILE).write_bytes(knowledge(registry))
    return 0


if __name__ == "__main__":
    sys.exit(main())
