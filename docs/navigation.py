"""A hook of MkDocs: puts every page into the navigation, conditions by family.

The generated pages change with the catalogue, so `mkdocs.yml` does not name them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONDITIONS = "Conditions"
REST = "More"
#: Long pages that have every word somewhere.
LISTS = ("facts.md", "verified.md", "limits.md", "cli.md")


def on_config(config: Any) -> Any:
    """Called by MkDocs with its configuration."""
    config["nav"] = complete(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with each page: a message or an id is looked up for its condition."""
    uri = page.file.src_uri
    if uri.startswith("conditions/") and not uri.endswith("README.md"):
        page.meta.setdefault("search", {"boost": 2})
        title = re.search(r"^# .*\n+(.+)$", markdown, re.MULTILINE)
        if title:  # `gpu-oom` is looked up as "out of memory": shown below its name, and found
            page.meta.setdefault("tags", [title[1].rstrip(".").replace("`", "")])
    elif uri in LISTS:
        page.meta.setdefault("search", {"boost": 0.3})
    return markdown


def complete(nav: list[Any], folder: Path) -> list[Any]:
    """The navigation with the conditions and with all pages that it does not name."""
    families: dict[str, list[str]] = {}
    for path in sorted((folder / "conditions").glob("*.md")):
        if path.name != "README.md":
            families.setdefault(_family(path), []).append(f"conditions/{path.name}")
    made = []
    for entry in nav:
        sections = [{family: pages} for family, pages in sorted(families.items())]
        if isinstance(entry, dict) and CONDITIONS in entry:
            made.append({CONDITIONS: [*entry[CONDITIONS], *sections]})
        else:
            made.append(entry)
    named = set(pages_of(made))
    rest = [page for page in all_pages(folder) if page not in named]
    return [*made, {REST: rest}] if rest else made


def pages_of(nav: Any) -> Iterator[str]:
    """Every page that a navigation names."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for inner in nav.values():
            yield from pages_of(inner)
    else:
        for inner in nav:
            yield from pages_of(inner)


def all_pages(folder: Path) -> list[str]:
    """Every page of the folder, as MkDocs names them."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))


def _family(page: Path) -> str:
    found = re.search(r"^- family: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "other"
