"""Files and folders that a script surely reads, as far as it states them literally.

Sources, read 2026-11-29: datasets 2.14 to 4.4 load.py (`load_dataset`, `load_from_disk`); pandas 2
io; transformers 4.30 to 5.24 and diffusers 0.30 `from_pretrained`, which take a text that begins so
for a folder and never for a name of the hub.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator

from dsdoctor.scripts.reach import dotted, sure_calls

#: Functions whose first argument is a file or folder that they read.
_READERS = frozenset(
    {"load_from_disk", "read_csv", "read_json", "read_parquet", "read_table", "read_excel",
     "read_pickle"}
)  # fmt: skip
_LOCAL = ("/", "./", "../")
#: What changes the folder in which a relative path is looked for.
_MOVES = frozenset({"chdir", "fchdir"})
#: More paths than any script states.
_MOST = 50


def paths_read(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Paths with the lines that read them.

    A path that the script mentions a second time, or whose folder it mentions, is left out: it may
    write it first.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(dotted(call.func).rpartition(".")[2] in _MOVES for call in calls):
        return
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    folders = {posixpath.normpath(text) for text in texts if text}
    read = [
        node
        for call in sure_calls(tree)
        for node in _read_by(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value
    ]
    for node in read[:_MOST]:
        path = str(node.value)
        name = posixpath.basename(path.rstrip("/"))
        plain = not set(path) & set("*?[~$") and "://" not in path
        if plain and sum(name in text for text in texts) == 1 and not _parents(path) & folders:
            yield path, node.lineno


def _parents(path: str) -> set[str]:
    """The folders that contain a path, but for `/` and `.`.

    >>> sorted(_parents("./data/a/b.json"))
    ['data', 'data/a']
    """
    parts = posixpath.normpath(path).split("/")[:-1]
    return {"/".join(parts[: n + 1]) for n in range(len(parts))} - {"", "."}


def _read_by(call: ast.Call) -> Iterator[ast.expr]:
    """Arguments of a call that are paths to read."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    first = call.args[0] if call.args else None
    if name == "load_dataset":
        for keyword in call.keywords:
            if keyword.arg == "data_files":
                yield from _members(keyword.value)
    elif first is None:
        return
    elif name == "from_pretrained":
        local = isinstance(first, ast.Constant) and str(first.value).startswith(_LOCAL)
        yield from [first] if local else []
    elif name in _READERS or (name == "open" and dotted(call.func) == "open" and _reads(call)):
        yield first


def _members(node: ast.expr) -> Iterator[ast.expr]:
    """A path, or all that a list or the values of a dictionary contain."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for part in node.elts:
            yield from _members(part)
    elif isinstance(node, ast.Dict):
        for part in node.values:
            yield from _members(part)
    else:
        yield node


def _reads(call: ast.Call) -> bool:
    """Whether `open` reads a file that has to be there."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    mode = call.args[1] if len(call.args) > 1 else given[0] if given else None
    if mode is None:
        return True
    return isinstance(mode, ast.Constant) and str(mode.value).startswith("r")
