"""Who may import what (docs/architecture.md)."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ENGINE = ROOT / "dsdoctor"
PACK = ROOT / "checks" / "dsdoctor_checks"

#: What the repository contains, apart from what begins with a dot: not a copy of it, or a log of a
#: test run.
TOP = frozenset(
    {
        "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "README.zh-CN.md", "SECURITY.md",
        "STYLE.md", "action.yml", "benchmarks", "checks", "constraints-train.txt", "deploy", "docs",
        "dsdoctor", "mkdocs.yml", "packaging", "pyproject.toml", "tests", "tools",
    }
)  # fmt: skip
#: Module to the places (relative to dsdoctor/) that may import it.
ALLOWED = {
    "subprocess": ("process/", "probes/children/"),
    "socket": ("host/", "probes/children/"),
    "psutil": ("process/", "host/", "probes/children/"),
    "rich": ("report/terminal.py", "cli/"),
    "torch": ("probes/children/", "smoke/worker"),
    "deepspeed": ("probes/children/", "smoke/worker"),
    "click": ("cli/",),
    "ClusterShell": ("fleet/",),
    "jinja2": ("report/html/",),
}


#: The layers, the lowest first. A module imports from its own layer and from those below it, so
#: that what a module needs can be read from top to bottom (docs/architecture.md).
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "version errors callable_module extras lazy_regex records safe_path files process proc_stat time_limit",
        "model",
        "framework host hostfile reading scripts yaml_text",
        "api interpreter recommend",
        "packs logs paste probes profiles settings",
        "collect fact_source fixes host_actions judge precedence report_head",
        "examine job language locales reference report",
        "lint lint_accelerate lint_files lint_hints lint_images lint_launches lint_manifests lint_variables",
        "calls compose machines smoke fleet hook preflight repair run snapshot_changes testing",
        "cli guard __init__ __main__",
    )
)
#: What runs elsewhere and imports nothing of ours, or its own folder alone.
ELSEWHERE = ("probes/children/", "smoke/worker/dsdsmoke")


#: Who may write files without `files.py`: what runs on its own in the examined interpreter.
WRITERS = ("files.py", "safe_path.py", "probes/children/", "smoke/worker/")
#: Calls that write, make or rename, by the last part of their name.
WRITING = {
    "write_text", "write_bytes", "touch", "mkdir", "makedirs", "symlink", "symlink_to", "link",
    "hardlink_to", "rename", "renames", "rmtree", "unlink", "rmdir", "removedirs", "truncate",
    "mkstemp", "mkdtemp", "mkfifo", "mknod", "chmod", "lchmod", "chown", "lchown", "copyfile",
    "copy2", "copytree", "move", "extractall", "extract", "NamedTemporaryFile", "TemporaryFile",
    "TemporaryDirectory",
}  # fmt: skip
#: Calls that are meant to be there: place to call, each with its reason.
WRITES_ITSELF = {
    *(("process/sweep.py", name) for name in ("unlink", "rmdir")),  # the same during an import
    ("process/sweep.py", "rmtree"),  # scratch folders of children, by the run's random name
    ("smoke/launcher.py", "rmtree"),  # folder of its own run
    ("smoke/launcher.py", "os.open"),  # looks for the lock of another run
    ("smoke/watch.py", "touch"),  # in the folder of its own run
    ("smoke/evidence.py", "unlink"),  # shared memory of its own run
    ("guard.py", "os.open"),  # /dev/null, when nobody reads stdout any more
    ("run/start.py", "rename"),  # the output of an earlier attempt, within the run's own folder
    ("run/flight.py", "os.open"),  # a pipe that a rank of the run reads
    ("run/watcher.py", "os.open"),  # /dev/null for the watcher
    ("run/store.py", "mkdir"),  # a new folder below one that was judged
    ("fleet/smoke.py", "TemporaryDirectory"),  # the hostfile of one pair
    ("fleet/ray.py", "TemporaryDirectory"),  # the working folder that Ray uploads
    ("hook/installed.py", "unlink"),  # uninstall: files that bear our mark
    ("hook/installed.py", "rmdir"),
    ("hook/agent.py", "unlink"),  # the verdict of its last round
    ("hook/rundir.py", "unlink"),  # in the run folder, which was judged
    ("hook/supervise.py", "unlink"),
}


def test_the_page_on_the_architecture_shows_these_layers() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| layer | modules |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    shown = [frozenset(re.findall(r"`(\w+)`", row)) for row in rows]
    assert shown == list(reversed(LAYERS)), "bring the table of docs/architecture.md up to date"


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
    """Whoever collects by himself forgets a part: the scale of deadlines, the interpreter.

    Except for a node before every job: no interpreter is examined, and `examine` costs time.
    """
    may = {"examine.py", "hook/node_reading.py"}
    broken = [
        path.relative_to(ENGINE).as_posix()
        for path in ENGINE.rglob("*.py")
        if "dsdoctor.collect" in set(imports(path))
        and any(calls(path, "collect"))
        and path.relative_to(ENGINE).as_posix() not in may
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


def writing_calls(path: Path) -> Iterator[str]:
    """Calls that write a file, by name; `open` counts where its mode writes."""
    for node in walk(path):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", None) or getattr(function, "id", "")
        owner = getattr(getattr(function, "value", None), "id", "")
        if owner in ("files", "writer"):
            continue
        if name in WRITING:
            yield name
        elif name == "replace" and owner == "os":
            yield "os.replace"
        elif name == "open" and owner == "os":
            flags = {n.attr for arg in node.args for n in ast.walk(arg) if hasattr(n, "attr")}
            if flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}:
                yield "os.open"
        elif name in ("open", "fdopen"):
            modes = [
                a.value
                for a in (*node.args, *(k.value for k in node.keywords))
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            ]
            if name == "open" and any(set(mode) <= set("wax+bt") and mode for mode in modes):
                yield "open"


def test_files_are_written_by_the_one_writer() -> None:
    broken = []
    for path in ENGINE.rglob("*.py"):
        place = path.relative_to(ENGINE).as_posix()
        if place.startswith(WRITERS):
            continue
        broken += [
            f"{place} calls {name}"
            for name in writing_calls(path)
            if (place, name) not in WRITES_ITSELF
        ]
    assert broken == []


def test_the_rule_of_the_one_writer_sees_every_way_to_write(tmp_path: Path) -> None:
    ways = [
        "open(p, 'w')", "open(p, mode='ab')", "p.open('x')", "p.write_text('')", "os.replace(a, b)",
        "os.open(p, os.O_WRONLY | os.O_CREAT)", "tempfile.mkstemp()", "shutil.copyfile(a, b)",
        "p.mkdir()", "os.symlink(a, b)",
    ]  # fmt: skip
    for way in ways:
        walk.cache_clear()
        (tmp_path / "m.py").write_text(way)
        assert list(writing_calls(tmp_path / "m.py")), way
    walk.cache_clear()
    (tmp_path / "m.py").write_text("open(p); open(p, 'rb'); text.replace('a', 'b'); p.open()")
    assert list(writing_calls(tmp_path / "m.py")) == []
    unused = {
        (place, name)
        for place, name in WRITES_ITSELF
        if name not in set(writing_calls(ENGINE / place))
    }
    assert unused == set(), "an exception that nobody needs any more"


def test_children_are_started_by_the_one_starter() -> None:
    """`subprocess` is held above; these are the other ways."""
    names = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "popen", "startfile", "spawnv"}
    broken = []
    for path in ENGINE.rglob("*.py"):
        place = path.relative_to(ENGINE).as_posix()
        if place.startswith(("process/", "preflight.py", "probes/children/", "smoke/worker")):
            continue
        for node in walk(path):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            name = node.func.attr
            of_os = getattr(node.func.value, "id", "") == "os"
            if of_os and (name in names or name.startswith("exec") or name == "system"):
                broken.append(f"{place} calls os.{name}")
    assert broken == []


def test_a_long_module_says_why() -> None:
    root = ENGINE.parent
    unexplained = set()
    for folder in ("dsdoctor", "checks", "tests", "tools", "benchmarks", "docs"):
        for path in (root / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            told = "Over 400 lines because" in (ast.get_docstring(ast.parse(text)) or "")
            if text.count("\n") > 400 and not told:
                unexplained.add(path.relative_to(root).as_posix())
    assert unexplained == set()


def test_nothing_else_is_in_the_repository() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: pyproject.toml lists what a source distribution contains")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True
    )
    there = {name.split("/")[0] for name in listed.stdout.splitlines()}
    assert {name for name in there if not name.startswith(".")} == TOP
