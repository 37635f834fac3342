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


def on_config(config: Any) -> Any:
    """Called by MkDocs with its configuration."""
    config["nav"] = complete(config["nav"], Path(config["docs_dir"]))
    return config


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
