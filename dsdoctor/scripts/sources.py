"""The source of what a script imports, without importing it."""

from __future__ import annotations

import ast
import posixpath
from typing import NamedTuple

from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.python import Packages
from dsdoctor.scripts.reach import parsed

#: Files that are read for one script: re-exports of `__init__.py`, and bases.
_MOST_FILES = 60
#: Names that are looked up for one script; each asks for a few files.
_MOST_NAMES = 500
#: What a module defines and others import.
Defined = ast.ClassDef | ast.FunctionDef


class _Imported(NamedTuple):
    """Where a name of a module comes from; without a name, it is the module itself."""

    module: str
    level: int
    name: str


class _Module:
    """What a module defines and imports, by name."""

    def __init__(self, tree: ast.Module) -> None:
        """Reads the tree once; a name that is defined twice is not known."""
        self.defined: dict[str, Defined | None] = {}
        self.imported: dict[str, _Imported] = {}
        for node in tree.body:
            if isinstance(node, Defined):
                self.defined[node.name] = None if node.name in self.defined else node
        for part in ast.walk(tree):
            if isinstance(part, ast.ImportFrom):
                for alias in part.names:
                    found = _Imported(part.module or "", part.level, alias.name)
                    self.imported.setdefault(alias.asname or alias.name, found)
            elif isinstance(part, ast.Import):
                for alias in part.names:
                    found = _Imported(alias.name, 0, "")
                    self.imported.setdefault(alias.asname or alias.name, found)


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
        # a checkout on PYTHONPATH comes first, and has no metadata
        origins = {} if isinstance(packages, Missing) else packages.origins
        for module, origin in origins.items():
            if posixpath.basename(origin) == "__init__.py":
                self._locations[module.replace("_", "-")] = posixpath.dirname(
                    posixpath.dirname(origin)
                )
        self._trees: dict[str, ast.Module | None] = {}
        self._modules: dict[str, _Module | None] = {}
        self._found: dict[tuple[str, str], tuple[Defined, str] | None] = {}

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
        key = (file or self._script, name)
        if key not in self._found and len(self._found) < _MOST_NAMES:
            self._found[key] = None  # modules may import from each other in a circle
            self._found[key] = self._find(*key)
        return self._found.get(key)

    def _find(self, path: str, name: str) -> tuple[Defined, str] | None:
        module = self._module(path)
        if module is None:
            return None
        if name in module.defined:
            found = module.defined[name]
            return None if found is None else (found, path)
        root, _, rest = name.partition(".")
        imported = module.imported.get(root)
        if imported is None or "." in rest or bool(rest) != (not imported.name):
            return None
        return self._in_module(path, imported.module, imported.level, imported.name or rest)

    def _module(self, path: str) -> _Module | None:
        if path not in self._modules:
            tree = self.tree(path)
            self._modules[path] = None if tree is None else _Module(tree)
        return self._modules[path]

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
                self._trees[path] = parsed(read_text(self._host, path))
            except HostError:
                self._trees[path] = None
        return self._trees.get(path)
