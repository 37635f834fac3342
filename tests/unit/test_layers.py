"""Who may import what (design §3)."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ENGINE = ROOT / "dsdoctor"
PACK = ROOT / "checks" / "dsdoctor_checks"

#: Module to the places (relative to dsdoctor/) that may import it.
ALLOWED = {
    "subprocess": ("process.py", "probes/children/"),
    "socket": ("host/", "probes/children/"),
    "psutil": ("process.py", "host/", "probes/children/"),
    "rich": ("report/terminal.py", "cli/"),
    "torch": ("probes/children/", "smoke/worker"),
    "deepspeed": ("probes/children/", "smoke/worker"),
    "click": ("cli/",),
    "ClusterShell": ("fleet/",),
}


#: The layers, the lowest first. A module imports from its own layer and from those below it, so
#: that what a module needs can be read from top to bottom (docs/architecture.md).
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "version errors records process",
        "model",
        "host hostfile",
        "api interpreter recommend",
        "registry",
        "packs logs probes profiles settings",
        "collect judge launch_site fixes",
        "examine report",
        "smoke fleet hook preflight testing",
        "cli __init__ __main__",
    )
)
#: What runs elsewhere and imports nothing of ours, or its own folder alone.
ELSEWHERE = ("probes/children/", "smoke/worker/dsdsmoke")


@functools.cache
def walk(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    for node in walk(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "dsdoctor":  # `from dsdoctor import settings`
                yield from (f"dsdoctor.{alias.name}" for alias in node.names)
            else:
                yield node.module


def test_restricted_modules_stay_where_they_belong() -> None:
    broken = []
    for path in ENGINE.rglob("*.py"):
        place = path.relative_to(ENGINE).as_posix()
        for name in imports(path):
            allowed = ALLOWED.get(name.split(".")[0])
            if allowed is not None and not place.startswith(allowed):
                broken.append(f"{place} imports {name}")
    assert broken == []


def test_the_model_imports_nothing_of_ours_but_itself_and_errors() -> None:
    broken = [
        f"{path.name} imports {name}"
        for path in (ENGINE / "model").rglob("*.py")
        for name in imports(path)
        if name.startswith("dsdoctor")
        and not name.startswith(("dsdoctor.model", "dsdoctor.errors"))
    ]
    assert broken == []


def test_a_pack_imports_only_the_api() -> None:
    broken = [
        f"{path.name} imports {name}"
        for path in PACK.rglob("*.py")
        for name in imports(path)
        if name.startswith("dsdoctor")
        and name != "dsdoctor.api"
        and not name.startswith("dsdoctor_checks")
    ]
    assert broken == []


def test_the_pack_does_no_io() -> None:
    forbidden = {"os", "subprocess", "socket", "shutil", "psutil", "glob"}
    broken = [
        f"{path.name} imports {name}"
        for path in PACK.rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in forbidden
    ]
    broken += [
        f"{path.name} imports {alias.name}"
        for path in PACK.rglob("*.py")
        for node in walk(path)
        if isinstance(node, ast.ImportFrom) and node.module == "pathlib"
        for alias in node.names
        if not alias.name.startswith("Pure")
    ]
    assert broken == []


def test_children_are_free_of_dsdoctor() -> None:
    broken = [
        f"{path.name} imports {name}"
        for path in (ENGINE / "probes" / "children").glob("*.py")
        for name in imports(path)
        if name.startswith("dsdoctor")
    ]
    assert broken == []


def calls(path: Path, name: str) -> Iterator[int]:
    for node in walk(path):
        if isinstance(node, ast.Call):
            function = node.func
            called = (
                function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            )
            if called == name:
                yield node.lineno


def test_machines_are_read_through_examine_alone() -> None:
    """Whoever collects by himself forgets a part: the scale of deadlines, the interpreter."""
    broken = [
        path.relative_to(ENGINE).as_posix()
        for path in ENGINE.rglob("*.py")
        if "dsdoctor.collect" in set(imports(path))
        and any(calls(path, "collect"))
        and path.name != "examine.py"
    ]
    assert broken == []


def layer(module: str) -> int:
    part = module.split(".")[1] if "." in module else "__init__"
    return next(number for number, names in enumerate(LAYERS) if part in names)


def test_every_module_stands_in_a_layer() -> None:
    there = {path.stem for path in ENGINE.iterdir() if path.suffix == ".py" or path.is_dir()}
    named = [name for names in LAYERS for name in names]
    assert sorted(there - {"__pycache__"}) == sorted(named)


def test_no_module_imports_upward() -> None:
    broken = []
    for path in ENGINE.rglob("*.py"):
        place = path.relative_to(ENGINE).as_posix()
        if place.startswith(ELSEWHERE):
            continue
        own = layer("dsdoctor." + place.split("/")[0].removesuffix(".py"))
        broken += [
            f"{place} imports {name}"
            for name in imports(path)
            if name.split(".")[0] == "dsdoctor" and layer(name) > own
        ]
    assert broken == []


def test_recommend_is_pure() -> None:
    """The memory model and the plan follow from facts: nothing is read or started."""
    forbidden = {"os", "subprocess", "socket", "shutil", "glob", "tempfile"}
    broken = [
        f"{path.name} imports {name}"
        for path in (ENGINE / "recommend").glob("*.py")
        for name in imports(path)
        if name.split(".")[0] in forbidden
    ]
    assert broken == []
