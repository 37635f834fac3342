"""The files of a project that a script imports: next to it, or below the working folder."""

from __future__ import annotations

import ast
import posixpath
import weakref
from collections.abc import Iterator

from dsdoctor.host import Host, HostError, read_text
from dsdoctor.scripts.reach import parsed

#: More modules than a script that trains one model has of its own.
MOST = 60
#: Characters of all of them.
_MOST_TEXT = 4 << 20


#: What a host has read: several facts are taken from one script.
_READ: weakref.WeakKeyDictionary[Host, dict[tuple[str, str], OwnFiles | None]] = (
    weakref.WeakKeyDictionary()
)


def own_files(host: Host, script: str, cwd: str) -> OwnFiles | None:
    """The script with the modules of its project; None if it is not Python or cannot be read.

    A host reads them once.
    """
    if not script.endswith(".py"):
        return None
    path = posixpath.normpath(posixpath.join(cwd, script))
    held = _READ.setdefault(host, {})
    if (path, cwd) not in held:
        try:
            held[path, cwd] = OwnFiles(host, path, cwd)
        except HostError:
            held[path, cwd] = None
    return held[path, cwd]


class OwnFiles:
    """The script and all modules of its project that it imports, anywhere and through each other.

    Attributes:
        trees: the syntax tree of each file, the script first.
        names: the top-level modules that belong to the project.
        complete: all files could be found, read and parsed.
    """

    def __init__(self, host: Host, script: str, cwd: str) -> None:
        """Reads the files.

        Raises:
            HostError: the script cannot be read.
        """
        self._host = host
        self._roots = dict.fromkeys((posixpath.dirname(script), posixpath.normpath(cwd)))
        self.trees: dict[str, ast.Module] = {}
        self.names: set[str] = set()
        self.complete = True
        found, waiting, left = {script}, [script], _MOST_TEXT
        while waiting:
            path = waiting.pop()
            text = read_text(host, path)
            left -= len(text)
            tree = parsed(text) if left >= 0 else None
            if tree is None:
                self.complete = False
                return
            self.trees[path] = tree
            for file in self._imported(path, tree):
                if file in found:
                    continue
                if len(found) == MOST:
                    self.complete = False
                    return
                found.add(file)
                waiting.append(file)

    def _imported(self, path: str, tree: ast.Module) -> Iterator[str]:
        """The project's files that a file imports."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._found(self._roots, alias.name.split("."), ())
            elif isinstance(node, ast.ImportFrom):
                parts = [part for part in (node.module or "").split(".") if part]
                names = tuple(alias.name for alias in node.names)
                if node.level:
                    above = [".."] * (node.level - 1)
                    folder = posixpath.normpath(posixpath.join(posixpath.dirname(path), *above))
                    yield from self._found({folder: None}, parts, names)
                elif parts:
                    yield from self._found(self._roots, parts, names)

    def _found(
        self, roots: dict[str, None], parts: list[str], names: tuple[str, ...]
    ) -> Iterator[str]:
        """The files of `a.b` in the first folder that has `a`, and of modules from there."""
        for root in roots:
            found = [*self._on_the_way(root, parts)]
            inside = posixpath.join(root, *parts)
            found += [file for name in names if (file := self._file(inside, name))]
            if found:
                if parts:
                    self.names.add(parts[0])
                whole = not parts or self._file(posixpath.dirname(inside), parts[-1])
                self.complete &= bool(whole or names)
                yield from found
                return

    def _on_the_way(self, root: str, parts: list[str]) -> Iterator[str]:
        """`a/__init__.py` and `a/b.py` for `a.b`."""
        for depth, part in enumerate(parts):
            if file := self._file(posixpath.join(root, *parts[:depth]), part):
                yield file

    def _file(self, folder: str, name: str) -> str:
        """The file of a module; "" = there is none."""
        for file in (f"{name}/__init__.py", f"{name}.py"):  # in Python's order
            path = posixpath.join(folder, file)
            try:
                if self._host.stat(path).kind == "file":
                    return path
            except HostError:
                continue
        return ""
