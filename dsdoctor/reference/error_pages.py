"""The pages of the error index: for each product, what to do about its messages.

A page shows the function that raises a message and never the message itself, which is in the log.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from pathlib import Path

from dsdoctor.logs import error_index, error_lookup
from dsdoctor.logs.error_index import Entry, ErrorIndex, Label
from dsdoctor.logs.plain_errors import DISPLAYED

#: Columns of the overview, and their titles.
KINDS = {
    "condition": "names a condition",
    error_lookup.REFUSAL: "rejects what the script requests",
    error_lookup.INTERNAL: "checks the product's own state",
    "none": "no answer yet",
}
HEAD = "| function | exception | releases | messages | answer |"


def kind_of(label: Label | None) -> str:
    """The column in which a message counts.

    >>> kind_of(Label("gpu-oom")), kind_of(Label("refusal", "Pass a path")), kind_of(None)
    ('condition', 'refusal', 'none')
    """
    if label is None:
        return "none"
    return label.kind if label.kind in KINDS else "condition"


def span(releases: Iterable[str]) -> str:
    """The first and the last of some releases.

    >>> span(["0.9.5", "0.10.3", "0.19.8"]), span(["1.0"])
    ('0.9.5 – 0.19.8', '1.0')
    """
    order = sorted(set(releases), key=lambda text: [int(part) for part in text.split(".")])
    return order[0] if len(order) == 1 else f"{order[0]} – {order[-1]}"


def answer(label: Label | None) -> str:
    """The cell of an answer, as Markdown."""
    kind = kind_of(label)
    if label is None or kind == "none":
        return "no answer yet"
    if kind == "condition":
        page = f"[{label.kind}](../conditions/{label.kind}.md)"
        said = "; ".join(filter(None, (label.text, label.hint))).replace("|", "\\|")
        return f"{page}: {said}" if said else page
    if kind == error_lookup.INTERNAL:
        return "an internal check: report it to the authors"
    return label.text.replace("|", "\\|")


def page(index: ErrorIndex) -> str:
    """The page of one product."""
    product = index.header.product
    rows = [
        f"# Errors that {product} raises",
        "",
        f"What to do about the exceptions of {product} {span(index.header.releases)}, by the",
        "function that raises them (the last frame of the traceback). To look up a row, run",
        '`dsdoctor diagnose LOG` or `dsdoctor explain "TEXT OF THE MESSAGE"`. Generated from the',
        "error index.",
    ]
    files: dict[str, dict[tuple[str, str, str], list[Entry]]] = {}
    for entry in index.entries:
        if entry.chunks:
            said = answer(index.answer(entry).label)
            groups = files.setdefault(entry.file, {})
            groups.setdefault((entry.function, entry.exception, said), []).append(entry)
    for file, groups in sorted(files.items()):
        rows += ["", f"## `{file}`", "", HEAD, "|---|---|---|---:|---|"]
        for (function, exception, said), entries in sorted(groups.items()):
            releases = span(one for entry in entries for one in entry.releases)
            name = DISPLAYED.get(exception, exception)
            cells = (f"`{function}`", f"`{name}`", releases, str(len(entries)), said)
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def overview(indexes: Iterable[ErrorIndex]) -> str:
    """The page that counts the messages of each product's last release."""
    rows = [
        "# Errors by product",
        "",
        "The error index contains the messages that these products can raise, as hashes of their",
        "words, with the function that raises them. A page lists the functions and their answers.",
        "",
        f"| product | release | messages | {' | '.join(KINDS.values())} |",
        f"|---|---|---:|{'---:|' * len(KINDS)}",
    ]
    for index in indexes:
        last = index.header.releases[-1]
        seen = collections.Counter(
            kind_of(index.answer(entry).label)
            for entry in index.entries
            if entry.chunks and last in entry.releases
        )
        name = index.header.product
        counts = " | ".join(str(seen[kind]) for kind in KINDS)
        rows.append(f"| [{name}]({name}.md) | {last} | {seen.total()} | {counts} |")
    return "\n".join(rows) + "\n"


def pages(folder: Path) -> dict[str, str]:
    """File name and text of every page.

    Raises:
        OSError: the index cannot be read.
    """
    names = sorted(error_lookup.products(folder))
    indexes = [error_index.load(folder, name) for name in names]
    made = {f"{name}.md": page(index) for name, index in zip(names, indexes, strict=True)}
    return {"README.md": overview(indexes), **made}
