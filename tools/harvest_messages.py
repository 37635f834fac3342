"""Makes the error index: reads the messages that released products can raise.

    pip download --no-deps deepspeed==0.19.8 -d DIR     # one release per minor
    python tools/harvest_messages.py deepspeed DIR/*    # writes <index folder>/deepspeed.index
    python tools/harvest_messages.py --add deepspeed DIR/deepspeed-0.19.9.tar.gz
    python tools/harvest_messages.py --show deepspeed DIR/deepspeed-0.19.8.tar.gz

`--add` keeps what the index has.

A folder is read as well, such as a wheel that is unpacked beside the C++ sources of its tag. Of
torch 2.1 to 2.13 the headers of its wheels were read, and of `torch/csrc/distributed/c10d` a dozen
checks that users meet, each found in the libraries of the releases that are named for it; the
libraries of 2.13 with CUDA were not looked at. Of ATen, c10 and autograd some forty checks of what
a script passes were read, each found in the libraries of 2.13 (assertions of kernels: of 2.9 with
CUDA).

Archives are read, never installed or run. What is written identifies a message and does not contain
it: exception, file, function, releases, and hashes of its literal words
(dsdoctor/logs/error_index.py). Digits are not among them: messages that differ only in a number,
such as the release that they ask for, share an answer, which has to be true of each. `--show`
prints the messages that have no answer yet, for whoever writes the answers; it writes nothing.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import native_messages
from msgspec import structs
from python_messages import HOLE, Module, constants_of, messages
from released import SCOPES, release_of, sources

from dsdoctor.logs import error_index, error_lookup
from dsdoctor.logs.error_index import Entry
from dsdoctor.logs.error_lookup import CHUNK, digest

FOLDER = Path(__file__).parent.parent / "checks" / "dsdoctor_checks" / "_error_index"
#: Chunks kept of a message: its beginning identifies it.
MOST_CHUNKS = 8
#: Products that print a request's id where a message has its first blank line.
INSERTING = frozenset({"huggingface_hub"})
#: A word that touches a hole is not wholly literal.
GLUED = re.compile(rf"[A-Za-z_0-9]*{HOLE}[A-Za-z_0-9{HOLE}]*")


class Found(NamedTuple):
    """A message of one release, and what a reader needs to understand it."""

    entry: Entry
    line: int
    text: str
    condition: str


def chunks_of(template: str) -> tuple[bool, tuple[tuple[int, str], ...]]:
    """Whether a template begins with a word, and its chunks."""
    text = GLUED.sub(HOLE, template)
    runs = [error_lookup.words_of(part) for part in text.split(HOLE)]
    chunks = [
        (len(part), digest(part))
        for run in runs
        for start in range(0, len(run), CHUNK)
        for part in [run[start : start + CHUNK]]
    ]
    return bool(runs[0]), tuple(chunks[:MOST_CHUNKS])


def harvest(path: Path, product: str, release: str) -> Iterator[Found]:
    """Every message of one release."""
    trees = {}
    for name, text in sources(path, product):
        if not name.endswith(".py"):
            yield from harvest_native(name, text, product, release)
            continue
        try:
            trees[name] = ast.parse(text)
        except SyntaxError:  # templates and files for another Python
            print(f"{name}: not read", file=sys.stderr)
    constants = constants_of(trees)
    for name, tree in trees.items():
        module = Module(tree, constants)
        for stmt, function, kind, why, texts in messages(tree, module):
            for text in texts:
                template = text.replace("\n\n", f" {HOLE} ") if product in INSERTING else text
                anchored, chunks = chunks_of(template)
                if text and not chunks:
                    continue  # it passes on what another has said
                entry = Entry(product, kind, name, function, (release,), chunks, anchored)
                yield Found(entry, stmt.lineno, text.replace(HOLE, "{}"), why)


def harvest_native(name: str, text: str, product: str, release: str) -> Iterator[Found]:
    """Every message of a C++ source; its words never begin a log's message for sure."""
    for one in native_messages.messages(text):
        _, chunks = chunks_of(one.text)
        if chunks:
            entry = Entry(product, one.exception, name, one.function, (release,), chunks, False)
            yield Found(entry, one.line, one.text.replace(HOLE, "{}"), one.condition)


def spans(present: Sequence[int]) -> str:
    """Numbers as ranges.

    >>> spans([0, 1, 2, 5])
    '0-2,5'
    """
    parts: list[list[int]] = []
    for number in present:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in parts)


def render(product: str, releases: Sequence[str], entries: Sequence[Entry], made: str) -> str:
    """The index of a product, as it is stored."""
    seen: dict[tuple[str, str, str, str], set[int]] = {}
    for entry in entries:
        chunks = ("^" if entry.anchored else "") + " ".join(f"{n}:{h}" for n, h in entry.chunks)
        row = (entry.file, entry.exception, entry.function, chunks)
        seen.setdefault(row, set()).add(releases.index(entry.releases[0]))
    rows = [f"#product {product}", f"#made {made}", f"#releases {' '.join(releases)}"]
    file = ""
    for (name, kind, function, chunks), present in sorted(seen.items()):
        if name != file:
            file = name
            rows.append(f">{name}")
        rows.append(f"{kind}\t{function}\t{spans(sorted(present))}\t{chunks}")
    return "\n".join(rows) + "\n"


def ordered(releases: Iterable[str]) -> list[str]:
    """Releases, the oldest first."""
    return sorted(releases, key=lambda text: [int(part) for part in text.split(".")])


def with_stored(
    product: str, releases: Sequence[str], entries: Sequence[Entry]
) -> tuple[list[str], list[Entry]]:
    """Releases and entries together with those that the index has; a release never changes."""
    header, stored = error_index.parse(error_lookup.stored_text(FOLDER, product))
    rows = [structs.replace(entry, releases=(one,)) for entry in stored for one in entry.releases]
    return ordered({*header.releases, *releases}), [*rows, *entries]


def show(found: Sequence[Found], known: Mapping[str, object]) -> None:
    """Prints the messages without an answer."""
    told: set[str] = set()
    for one in found:
        key = one.entry.key
        if key in known or key in told:
            continue
        told.add(key)
        text = " ".join(one.text.split())
        why = " ".join(one.condition.split())[:160]
        entry = one.entry
        print(f"{key} {entry.file}:{one.line} {entry.function} {entry.exception} [{why}] {text}")


def main() -> None:
    """Harvests one product."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--show", action="store_true", help="print what has no answer yet")
    parser.add_argument("--add", action="store_true", help="keep what is there")
    parser.add_argument("product", choices=sorted(SCOPES))
    parser.add_argument("archives", nargs="+", type=Path)
    args = parser.parse_args()
    by_release = {release_of(path, args.product): path for path in args.archives}
    releases = ordered(by_release)
    found = [one for name in releases for one in harvest(by_release[name], args.product, name)]
    if args.show:
        known = FOLDER / f"{args.product}{error_index.LABELS}"
        text = known.read_text(encoding="utf-8") if known.is_file() else ""
        show(found[::-1], error_index.parse_labels(text))
        return
    made = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    entries = [one.entry for one in found]
    if args.add:
        releases, entries = with_stored(args.product, releases, entries)
    text = render(args.product, releases, entries, made)
    (FOLDER / f"{args.product}{error_lookup.SUFFIX}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
