"""Finds packs: entry points, then checks.d folders (docs/architecture.md)."""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType

from dsdoctor import files
from dsdoctor.api import Probe
from dsdoctor.errors import UsageError
from dsdoctor.model.condition import Boilerplate
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.run import Scope
from dsdoctor.packs.containment import (
    LOAD_SECONDS,
    PackCodeError,
    contained,
    one_line,
    rows,
    where,
    words,
)
from dsdoctor.packs.entry_points import EntryPoint, entry_points
from dsdoctor.packs.naming import name_problem, prefix_of_file
from dsdoctor.packs.parts import PackError, facts_of, fixes_of, probes_of, unit_of
from dsdoctor.packs.places import BUILTIN, GROUP
from dsdoctor.packs.places import folders as usual_folders
from dsdoctor.packs.registry import FixUnit, Pack, Problem, Registry, Unit
from dsdoctor.safe_path import UnsafePathError, trusted_accounts, why_untrusted
from dsdoctor.time_limit import OutOfTimeError, ends_by


def load_package(name: str, package: str, origin: str, word: bytes = b"") -> Pack:
    """Loads all modules of a package, or only those whose source contains a word.

    Raises:
        Exception: whatever a module raises when it is imported.
    """
    root = importlib.import_module(package)
    units: list[Unit] = []
    probes: list[Probe] = []
    fixes: list[FixUnit] = []
    facts: list[type[Fact]] = []
    boilerplate: list[Boilerplate] = []
    names = [
        found
        for place in getattr(root, "__path__", ())
        for found in _modules(place, package)
        if not word or _contains(place, found.removeprefix(f"{package}."), word)
    ]
    for module in [root, *(importlib.import_module(found) for found in names)]:
        parts = module.__name__.split(".")
        family = parts[1] if len(parts) > 2 else name  # noqa: PLR2004  # package.family.file
        unit = unit_of(module, name, family)
        if unit is not None:
            units.append(unit)
        probes.extend(probes_of(module))
        fixes.extend(fixes_of(module))
        sentences = getattr(module, "BOILERPLATE", ())
        if name != BUILTIN:  # whose facts are those of `dsdoctor.model`
            facts.extend(facts_of(module))
            sentences = rows(sentences, Boilerplate, "BOILERPLATE")
        boilerplate.extend(sentences)
    pack = Pack(
        name=name,
        origin=origin,
        units=tuple(units),
        probes=tuple(probes),
        fixes=tuple(fixes),
        facts=tuple(facts),
        boilerplate=tuple(boilerplate),
        literals=_literals(getattr(root, "__path__", ())),
        error_index=_error_index(getattr(root, "__path__", ())),
        facts_as_of=str(getattr(root, "FACTS_AS_OF", "")),
    )
    return pack if name == BUILTIN else _with_valid_names(pack, name)


def _contains(place: str, module: str, word: bytes) -> bool:
    """Whether a module's source contains a word; one that cannot be read may contain it."""
    path = f"{place}/{module.replace('.', '/')}.py"
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # two hundred of them
            return word in file.read()
    except OSError:
        return not os.path.isdir(path.removesuffix(".py"))  # noqa: PTH112  # a package has no source


def _error_index(folders: Iterable[str]) -> Path | None:
    """The folder of a pack's error index; None if it has none."""
    found = (Path(folder) / "_error_index" for folder in folders)
    return next((folder for folder in found if folder.is_dir()), None)


def _literals(folders: Iterable[str]) -> Path | None:
    """The file with the literals of a pack's patterns, derived in advance; None if it has none."""
    files = (Path(folder) / "literals.json" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _with_valid_names(pack: Pack, prefix: str) -> Pack:
    """The pack itself, after checking that all of its names begin with its prefix.

    Raises:
        PackError: one does not.
    """
    wrong = name_problem(pack, prefix)
    if wrong:
        raise PackError(wrong)
    return pack


def _modules(folder: str, package: str) -> Iterator[str]:
    """Names of the modules below a package, without those that begin with `_`.

    `pkgutil.walk_packages` queries every finder for every folder, which is much slower.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # in an archive
        import pkgutil  # noqa: PLC0415  # rarely needed, and slow to import

        for module in pkgutil.walk_packages([folder], f"{package}."):
            if not module.name.rpartition(".")[2].startswith("_"):
                yield module.name
        return
    for entry in found:
        stem, dot, suffix = entry.name.partition(".")
        if stem.startswith("_") or not stem.isidentifier():
            continue
        if suffix == "py":
            yield f"{package}.{stem}"
        elif not dot and entry.is_dir() and os.path.isfile(f"{entry.path}/__init__.py"):  # noqa: PTH113
            yield f"{package}.{stem}"
            yield from _modules(entry.path, f"{package}.{stem}")


#: Largest file of checks.d, in bytes: compiling it cannot be interrupted.
LARGEST_FILE = 1 << 20


def load_file(path: Path) -> Pack:
    """Loads one file of a checks.d folder.

    Raises:
        Exception: whatever the file raises when it is run.
    """
    name = f"dsdoctor_checks_d_{path.stem}"
    try:
        text = files.read(path, strict=True, limit=LARGEST_FILE).decode("utf-8")
    except UnsafePathError as error:
        raise PackError(f"root does not run it: {error.strerror}") from None
    loader = _Source(name, path, text)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise PackError(f"`{path}` is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
        unit = unit_of(module, str(path), path.stem)
        pack = Pack(
            name=str(path),
            origin=str(path.parent),
            units=() if unit is None else (unit,),
            probes=tuple(probes_of(module)),
            fixes=tuple(fixes_of(module)),
            facts=tuple(facts_of(module)),
            boilerplate=rows(getattr(module, "BOILERPLATE", ()), Boilerplate, "BOILERPLATE"),
        )
        return _with_valid_names(pack, prefix_of_file(path))
    except BaseException:
        sys.modules.pop(name, None)
        raise


class _Source(importlib.machinery.SourceFileLoader):
    """Runs the text that was read when the file was judged, not what the file contains later."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        super().__init__(name, str(path))
        self.text = text

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  # the loader's protocol
        """The text, compiled; bytecode files next to the source were not judged."""
        return self.source_to_code(self.text.encode(), self.path)

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        """The text."""
        return self.text


def _reason(error: Exception) -> str:
    """Why a pack failed, in one line; the pack's own text is masked."""
    if isinstance(error, (PackError, PackCodeError)):
        return one_line(str(error))
    return f"{words(error)}{where(error)}"


def _load_contained(name: str, load: Callable[[], Pack]) -> Pack:
    """Loads a third party's pack, whose code can neither end dsdoctor nor run without end.

    Raises:
        Exception: whatever its code raises.
    """
    try:
        with ends_by(time.monotonic() + LOAD_SECONDS), contained(name):
            return load()
    except OutOfTimeError:
        raise PackError(f"it was not loaded within {LOAD_SECONDS:g} s") from None


def load(
    folders: Iterable[str] = (), *, builtin_only: bool = False, only_root_owned: bool = False
) -> Registry:
    """Loads all packs; broken ones are reported and left out.

    Args:
        folders: further folders (--checks-dir).
        builtin_only: load only the built-in pack; for tests.
        only_root_owned: leave out files that another account could have written (root's hooks).

    Raises:
        UsageError: one of `folders` does not exist.
    """
    # imported modules stay: the garbage collector would find nothing to free, and costs 10 %
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _load(folders, builtin_only=builtin_only, only_root_owned=only_root_owned)
    finally:
        if was_on:
            gc.enable()


def load_scope(scope: Scope) -> Registry:
    """Loads the built-in pack's conditions of one scope, for a gate that every job waits for.

    A module is imported if its source contains the scope's name. The registry has no fixes, and no
    conditions of other scopes.
    """
    registry = Registry()
    try:
        word = f"Scope.{scope.name}".encode()
        registry.add(load_package(BUILTIN, "dsdoctor_checks", "dsdoctor", word))
    except Exception as error:  # noqa: BLE001  # a pack may raise anything
        registry.problems.append(Problem(BUILTIN, _reason(error)))
    return registry


def _load(folders: Iterable[str], *, builtin_only: bool, only_root_owned: bool) -> Registry:
    registry = Registry()
    for point in _points(registry, builtin_only=builtin_only):
        load = functools.partial(load_package, point.name, point.value, point.origin)
        try:
            registry.add(load() if point.name == BUILTIN else _load_contained(point.name, load))
        except Exception as error:  # noqa: BLE001  # a pack may raise anything
            registry.problems.append(Problem(point.name, _reason(error)))
    if builtin_only:
        return registry
    given = [Path(folder) for folder in folders]
    for folder in given:
        if not folder.is_dir():
            raise UsageError(
                f"`--checks-dir {folder}` is not a folder; expected one with *.py files"
            )
    for folder in [*usual_folders(), *given]:
        _load_folder(folder, registry, only_root_owned=only_root_owned)
    return registry


def _points(registry: Registry, *, builtin_only: bool) -> list[EntryPoint]:
    """The built-in pack, then the others by name; a second one of the same name is a problem."""
    builtin = EntryPoint(BUILTIN, "dsdoctor_checks", "dsdoctor")
    if builtin_only:
        return [builtin]
    found = {BUILTIN: builtin}
    for point in sorted(entry_points(GROUP), key=lambda point: (point.name, point.origin)):
        known = found.setdefault(point.name, point)
        if known is builtin and point.value == builtin.value:
            found[BUILTIN] = point  # the same pack, with its distribution
        elif (known.value, known.origin) != (point.value, point.origin):
            registry.problems.append(
                Problem(
                    point.name,
                    f"the entry point `{point.name}` of {point.origin} (`{point.value}`) is "
                    f"already taken by {known.origin} (`{known.value}`)",
                )
            )
    return sorted(found.values(), key=lambda point: (point.name != BUILTIN, point.name))


def _load_folder(folder: Path, registry: Registry, *, only_root_owned: bool) -> None:
    try:
        found = sorted(folder.glob("*.py"))
    except OSError:
        return
    roots = trusted_accounts() - {os.geteuid()} | {0} if hasattr(os, "geteuid") else None
    for path in found:
        try:
            distrust = why_untrusted(path, roots) if only_root_owned else ""
            if distrust:
                raise PackError(f"root does not run it: {distrust}")  # noqa: TRY301  # as any other
            registry.add(_load_contained(str(path), functools.partial(load_file, path)))
        except Exception as error:  # noqa: BLE001  # a pack may raise anything
            registry.problems.append(Problem(str(path), _reason(error)))
