"""Finds packs: entry points, then checks.d folders (docs/architecture.md)."""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType

from dsdoctor import files
from dsdoctor.api import Check, Fix, Probe
from dsdoctor.entry_points import EntryPoint, entry_points
from dsdoctor.errors import UsageError
from dsdoctor.model.condition import Boilerplate, Condition, Limits
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.run import Scope
from dsdoctor.pack_names import name_problem, prefix_of_file
from dsdoctor.pack_places import BUILTIN, GROUP
from dsdoctor.pack_places import folders as usual_folders
from dsdoctor.registry import Cure, Pack, Problem, Registry, Unit, gives, needs
from dsdoctor.safe_path import UnsafePathError, trusted_accounts, why_untrusted


class PackError(Exception):
    """A pack breaks a rule, in one line."""


def unit_of(module: ModuleType, pack: str, family: str) -> Unit | None:
    """The condition that a module holds, None when it holds none.

    Raises:
        PackError: it holds several, or a check of another condition, or no docstring.
    """
    conditions = [value for value in vars(module).values() if isinstance(value, Condition)]
    if not conditions:
        return None
    if len(conditions) > 1:
        raise PackError(f"`{module.__name__}` defines {len(conditions)} conditions, expected one")
    condition = conditions[0]
    checks = [value for value in vars(module).values() if isinstance(value, Check)]
    if any(check.condition is not condition for check in checks) or len(checks) > 1:
        raise PackError(f"`{module.__name__}` must define one check, of `{condition.name}`")
    lines = inspect.cleandoc(module.__doc__ or "").split("\n")
    if not lines[0]:
        raise PackError(f"`{module.__name__}` has no docstring, which would be its page")
    for check in checks:
        try:
            wanted = needs(check.function)
        except TypeError as error:
            raise PackError(str(error)) from None
        for need in wanted:
            if not issubclass(need.kind, (Fact, Limits)):
                raise PackError(f"parameter `{need.name}` of a check must be a fact or limits")
    return Unit(
        condition=condition,
        title=lines[0].rstrip("."),
        page="\n".join(lines[1:]).strip(),
        family=family,
        pack=pack,
        check=checks[0] if checks else None,
        signatures=tuple(getattr(module, "SIGNATURES", ())),
        hint=str(getattr(module, "HINT", "")),
        place=pack if pack.endswith(".py") else module.__name__,
        traceback_rules=tuple(getattr(module, "TRACEBACK_RULES", ())),
    )


def probes_of(module: ModuleType) -> Iterator[Probe]:
    """Probes that a module defines.

    Raises:
        PackError: an annotation names no fact.
    """
    for value in vars(module).values():
        if isinstance(value, Probe) and value.function.__module__ == module.__name__:
            try:
                gives(value.function)
            except TypeError as error:
                raise PackError(str(error)) from None
            yield value


def facts_of(module: ModuleType) -> Iterator[type[Fact]]:
    """Fact classes that a module defines."""
    for value in vars(module).values():
        if (
            isinstance(value, type)
            and issubclass(value, Fact)
            and value.__module__ == module.__name__
        ):
            yield value


def cures_of(module: ModuleType) -> Iterator[Cure]:
    """Fixes that a module defines.

    Raises:
        PackError: a fix has no page, or has a parameter that is not a fact.
    """
    for value in vars(module).values():
        if not isinstance(value, Fix) or value.function.__module__ != module.__name__:
            continue
        lines = inspect.cleandoc(module.__doc__ or "").split("\n")
        if not lines[0]:
            raise PackError(f"`{module.__name__}` has no docstring, which would be its page")
        try:
            wanted = needs(value.function)
        except TypeError as error:
            raise PackError(str(error)) from None
        if not all(issubclass(need.kind, Fact) for need in wanted):
            raise PackError(f"every parameter of fix `{value.name}` must be a fact")
        yield Cure(value, lines[0].rstrip("."), "\n".join(lines[1:]).strip())


def load_package(name: str, package: str, origin: str, word: bytes = b"") -> Pack:
    """Loads all modules of a package, or those alone whose source contains a word.

    Raises:
        Exception: whatever a module raises when it is imported.
    """
    root = importlib.import_module(package)
    units: list[Unit] = []
    probes: list[Probe] = []
    cures: list[Cure] = []
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
        cures.extend(cures_of(module))
        boilerplate.extend(getattr(module, "BOILERPLATE", ()))
        if name != BUILTIN:  # whose facts are those of `dsdoctor.model`
            facts.extend(facts_of(module))
    pack = Pack(
        name=name,
        origin=origin,
        units=tuple(units),
        probes=tuple(probes),
        cures=tuple(cures),
        facts=tuple(facts),
        boilerplate=tuple(boilerplate),
        literals=_literals(getattr(root, "__path__", ())),
        error_index=_error_index(getattr(root, "__path__", ())),
        facts_as_of=str(getattr(root, "FACTS_AS_OF", "")),
    )
    return pack if name == BUILTIN else _named(pack, name)


def _contains(place: str, module: str, word: bytes) -> bool:
    """Whether a module's source contains a word; one that cannot be read may contain it."""
    path = f"{place}/{module.replace('.', '/')}.py"
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # two hundred of them
            return word in file.read()
    except OSError:
        return not os.path.isdir(path.removesuffix(".py"))  # noqa: PTH112  # a package: its modules


def _error_index(folders: Iterable[str]) -> Path | None:
    """The error index beside a pack's modules, where there is one."""
    found = (Path(folder) / "_error_index" for folder in folders)
    return next((folder for folder in found if folder.is_dir()), None)


def _literals(folders: Iterable[str]) -> Path | None:
    """The file in which a pack keeps what was derived from its patterns beforehand."""
    files = (Path(folder) / "literals.json" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _named(pack: Pack, prefix: str) -> Pack:
    """The pack itself, whose names all begin with its prefix.

    Raises:
        PackError: one does not.
    """
    wrong = name_problem(pack, prefix)
    if wrong:
        raise PackError(wrong)
    return pack


def _modules(folder: str, package: str) -> Iterator[str]:
    """Modules below a package by name, those left out that begin with `_`.

    `pkgutil.walk_packages` asks every finder for every folder, which takes longer than the rest.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # in an archive
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


def load_file(path: Path) -> Pack:
    """Loads one file of a checks.d folder.

    Raises:
        Exception: whatever the file raises when it is run.
    """
    name = f"dsdoctor_checks_d_{path.stem}"
    try:
        text = files.read(path, strict=True).decode("utf-8")
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
            cures=tuple(cures_of(module)),
            facts=tuple(facts_of(module)),
            boilerplate=tuple(getattr(module, "BOILERPLATE", ())),
        )
        return _named(pack, prefix_of_file(path))
    except BaseException:
        sys.modules.pop(name, None)
        raise


class _Source(importlib.machinery.SourceFileLoader):
    """Runs the text that was judged on its descriptor, and not what stands there a moment later."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        super().__init__(name, str(path))
        self.text = text

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  # the loader's protocol
        """The text compiled; byte code that lies beside the file was not judged."""
        return self.source_to_code(self.text.encode(), self.path)

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        """The text."""
        return self.text


def _reason(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({last[0].filename}:{last[0].lineno})" if last else ""
    text = str(error).strip().splitlines()
    if isinstance(error, PackError):
        return text[0]
    return f"{type(error).__name__}: {text[0] if text else 'no message'}{where}"


def load(
    folders: Iterable[str] = (), *, builtin_only: bool = False, only_root_owned: bool = False
) -> Registry:
    """Loads every pack there is; broken ones are reported and left out.

    Args:
        folders: further folders, given with --checks-dir.
        builtin_only: leave out what is not ours; for tests.
        only_root_owned: leave out files that somebody else could have written (hooks run by root).

    Raises:
        UsageError: a folder given with --checks-dir does not exist.
    """
    # modules are loaded once and stay: a collector that runs meanwhile finds nothing and costs 10 %
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _load(folders, builtin_only=builtin_only, only_root_owned=only_root_owned)
    finally:
        if was_on:
            gc.enable()


def load_scope(scope: Scope) -> Registry:
    """Loads the built-in pack's conditions of one scope, for a gate that every job waits for.

    A module is imported if its source names the scope. There are no fixes, and a condition of
    another scope cannot be found by its name.
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
        try:
            registry.add(load_package(point.name, point.value, point.origin))
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
    """The built-in pack, then the others by name; two of one name are a problem, and left out."""
    builtin = EntryPoint(BUILTIN, "dsdoctor_checks", "dsdoctor")
    if builtin_only:
        return [builtin]
    found = {BUILTIN: builtin}
    for point in sorted(entry_points(GROUP), key=lambda point: (point.name, point.origin)):
        known = found.setdefault(point.name, point)
        if known is builtin and point.value == builtin.value:
            found[BUILTIN] = point  # the same pack, with the distribution that it came in
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
                raise PackError(f"root does not run it: {distrust}")  # noqa: TRY301
            registry.add(load_file(path))
        except Exception as error:  # noqa: BLE001  # a pack may raise anything
            registry.problems.append(Problem(str(path), _reason(error)))
