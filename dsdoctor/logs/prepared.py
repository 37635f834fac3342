"""What the built-in pack knows about logs, read from one file instead of from two hundred modules.

`python docs/generate.py` writes the file: a row for each module, with the size and a checksum of
its source. If a module has changed since, the modules themselves are loaded: a stale file costs
time and changes no answer. As with `make`, a module that is not newer than the file, and has the
same size, counts as unchanged, since reading two hundred modules takes 4 ms. A file that an
installer writes within two seconds is not newer.
"""

from __future__ import annotations

import importlib.util
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from dsdoctor.logs.knowledge import Knowledge, Stated, assemble
from dsdoctor.logs.necessary import prepare
from dsdoctor.model.condition import Boilerplate
from dsdoctor.packs.places import only_builtin

FILE = "logs.json"
LITERALS = "literals.json"
ERROR_INDEX = "_error_index"
PACKAGE = "dsdoctor_checks"
#: Nanoseconds in which an installer unpacks a pack: files written so close together have one age.
UNPACKED_WITHIN = 2_000_000_000


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A module of the pack.

    Attributes:
        file: path below the pack's folder.
        size: size of its source in bytes.
        sum: checksum of its source.
        stated: what its condition declares about logs.
        boilerplate: sentences that it declares not to be evidence.
    """

    file: str
    size: int
    sum: int
    stated: Stated | None = None
    boilerplate: tuple[Boilerplate, ...] = ()


def modules(folder: Path) -> dict[str, os.stat_result]:
    """The source files of a pack, by their paths below its folder.

    Raises:
        OSError: the folder cannot be read.
    """
    return dict(_modules(str(folder), ""))


def _modules(folder: str, inner: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.endswith(".py"):
            yield inner + entry.name, entry.stat()
        elif "." not in entry.name and entry.name[0] != "_" and entry.is_dir():
            yield from _modules(entry.path, f"{inner}{entry.name}/")


def _is_fresh(folder: Path, rows: Iterable[Row]) -> bool:
    """Whether the file agrees with the modules; OSError if one cannot be read."""
    written = (folder / FILE).stat().st_mtime_ns
    found = modules(folder)
    known = {row.file: row for row in rows}
    if found.keys() != known.keys():
        return False
    for name, stat in found.items():
        if stat.st_size != known[name].size:
            return False
        is_newer = stat.st_mtime_ns > written + UNPACKED_WITHIN
        if is_newer and zlib.crc32((folder / name).read_bytes()) != known[name].sum:
            return False
    return True


def render(rows: Iterable[Row]) -> bytes:
    """The content of the file, one row per line."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def read(folder: Path) -> Knowledge | None:
    """What a pack's file contains; None if it is missing, or a module has changed since."""
    try:
        data = (folder / FILE).read_bytes()
        rows = msgspec.json.Decoder(Row).decode_lines(data)
        if not _is_fresh(folder, rows):
            return None
    except (OSError, msgspec.MsgspecError):
        return None
    prepare(folder / LITERALS)
    index = folder / ERROR_INDEX
    return assemble(
        [row.stated for row in rows if row.stated is not None],
        [sentence for row in rows for sentence in row.boilerplate],
        (index,) if index.is_dir() else (),
    )


def knowledge(checks_dirs: Iterable[str] = ()) -> Knowledge | None:
    """What the built-in pack knows about logs; None if the packs themselves have to be loaded.

    They have to if there are other packs, or if the built-in pack's file cannot be used.
    """
    if tuple(checks_dirs) or not only_builtin():
        return None
    spec = importlib.util.find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    return read(Path(next(iter(places)))) if places else None
