"""The source of what a script imports, without importing it."""

from __future__ import annotations

import ast
import posixpath

from dsdoctor.framework import syntax_of
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import Packages

#: Files that are read for one script: re-exports of `__init__.py`, and bases.
_MOST_FILES = 60
#: What a module defines and others import.
Defined = ast.ClassDef | ast.FunctionDef


class Sources:
    """Finds what the script imports: in modules next to it, and in installed packages."""

    def __init__(self, host: Host, script: str, cwd: str, packages: Packages | Missing) -> None:
        """Reads nothing yet."""
        self._host = host
        self._script = script
        # a module that is not next to the script is on PYTHONPATH, often with the working folder
        self._folders = (posixpath.dirname(self._script), posixpath.normpath(cwd))
        found = {} if isinstance(packages, Missing) else packages.packages
        self._locations = {name: package.location for name, package in found.items()}
        self._trees: dict[str, ast.Module | None] = {}

    def package_of(self, file: str) -> str:
        """The top-level module of an installed package that a file belongs to; "" = none."""
        for location in set(self._locations.values()) - {""}:
            inside = file.removeprefix(f"{location.rstrip('/')}/")
            if inside != file:
                return inside.partition("/")[0]
        return ""

    def find_class(self, file: str, name: str) -> tuple[ast.ClassDef, str] | None:
        """The class that a file names, and the file that defines it."""
        found = self.find(file, name)
        return (found[0], found[1]) if found and isinstance(found[0], ast.ClassDef) else None

    def find(self, file: str, name: str) -> tuple[Defined, str] | None:
        """The class or function that a file names, and the file that defines it."""
        path = file or self._script
        tree = self.tree(path)
        if tree is None:
            return None
        defined = [n for n in tree.body if isinstance(n, Defined) and n.name == name]
        if len(defined) == 1:
            return defined[0], path
        root, _, rest = name.partition(".")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not rest:
                for alias in node.names:
                    if root == (alias.asname or alias.name):
                        return self._in_module(path, node.module or "", node.level, alias.name)
            elif isinstance(node, ast.Import) and rest and "." not in rest:
                for alias in node.names:
                    if root == (alias.asname or alias.name):
                        return self._in_module(path, alias.name, 0, rest)
        return None

    def _in_module(
        self, path: str, module: str, level: int, name: str
    ) -> tuple[Defined, str] | None:
        parts = [part for part in module.split(".") if part]
        if level:
            folders = [
                posixpath.normpath(posixpath.join(posixpath.dirname(path), *[".."] * (level - 1)))
            ]
        else:
            package = self._locations.get(parts[0].replace("_", "-").lower(), "") if parts else ""
            folders = [*self._folders, *([package] if package else ())]
        for folder in folders:
            inside = posixpath.join(folder, *parts)
            for place in (f"{inside}/__init__.py", f"{inside}.py"):
                if place != path and exists(self._host, place):
                    return self.find(place, name)
        return None

    def tree(self, path: str) -> ast.Module | None:
        """The syntax tree of a file; None if it cannot be read, or too many were."""
        if path not in self._trees and len(self._trees) < _MOST_FILES:
            try:
                self._trees[path] = syntax_of(read_text(self._host, path))
            except HostError:
                self._trees[path] = None
        return self._trees.get(path)
