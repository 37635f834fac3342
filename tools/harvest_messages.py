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

Archives are read, never installed or run. What is written identifies a message and does not
contain it: exception, file, function, releases, and hashes of its literal words
(dsdoctor/logs/error_index.py). `--show` prints the messages that have no answer yet, for
whoever writes the answers; it writes nothing.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import native_messages
from msgspec import structs
from released import SCOPES, release_of, sources

from dsdoctor.logs import error_index, error_lookup
from dsdoctor.logs.error_index import Entry
from dsdoctor.logs.error_lookup import CHUNK, canonical, digest

FOLDER = Path(__file__).parent.parent / "checks" / "dsdoctor_checks" / "_error_index"
#: A place for a value, in a template.
HOLE = "\x00"
#: Texts that one expression may become at most.
MOST_TEXTS = 6
#: How deep an expression may be nested.
DEEPEST = 6
#: How many times a name may be assigned before its texts are left out.
MOST_ASSIGNED = 8
#: Chunks kept of a message: its beginning identifies it.
MOST_CHUNKS = 8
LOGGED = {"error", "critical", "exception", "fatal"}
PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
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


class Module:
    """A source file with the texts that its names stand for."""

    def __init__(self, tree: ast.Module, constants: Mapping[str, str]) -> None:
        self.constants = constants
        self.names: dict[str, list[ast.expr]] = {}
        self.take(tree.body)

    def take(self, body: Sequence[ast.stmt]) -> None:
        """Notes what is assigned on the top level."""
        self.names |= assigned(body)

    def texts(self, node: ast.expr, depth: int = 0) -> list[str]:
        """What an expression may print, with holes for values; at most MOST_TEXTS texts."""
        if depth > DEEPEST:
            return [HOLE]
        found = self._texts(node, depth + 1)
        return list(dict.fromkeys(found))[:MOST_TEXTS]

    def _texts(  # noqa: PLR0911  # one for each kind of expression
        self, node: ast.expr, depth: int
    ) -> list[str]:
        match node:
            case ast.Constant(value=value):
                return [str(value)]
            case ast.JoinedStr(values=values):
                return self._joined(values, depth)
            case ast.FormattedValue(value=ast.Name() | ast.Attribute() as value):
                name = value.id if isinstance(value, ast.Name) else value.attr
                return [self.constants.get(name, HOLE)]
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([left, right], depth)
            case ast.BinOp(op=ast.Mod(), left=left):
                texts = self.texts(left, depth)
                return [PERCENT.sub(HOLE, one).replace("%%", "%") for one in texts]
            case ast.IfExp(body=body, orelse=orelse):
                return self.texts(body, depth) + self.texts(orelse, depth)
            case ast.Tuple(elts=elts) | ast.List(elts=elts) if elts:
                return self._joined(elts, depth, " ")
            case ast.Call():
                return self._call(node, depth)
            case ast.Name(id=name) if name in self.names:
                parts = self.names[name]
                if len(parts) > MOST_ASSIGNED:
                    return [HOLE]
                texts = [one for part in parts for one in self.texts(part, depth)]
                return texts if len(parts) == 1 else [f"{HOLE}{one}{HOLE}" for one in texts]
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return [self.constants.get(name, HOLE)]
        return [HOLE]

    def _joined(self, values: Sequence[ast.expr], depth: int, by: str = "") -> list[str]:
        choices = [self.texts(value, depth) for value in values]
        return [by.join(row) for row in itertools.islice(itertools.product(*choices), MOST_TEXTS)]

    def _call(self, node: ast.Call, depth: int) -> list[str]:
        match node.func:
            case ast.Attribute(attr="format", value=value):
                return [
                    BRACES.sub(lambda m: m[0][0] if m[0] in {"{{", "}}"} else HOLE, one)
                    for one in self.texts(value, depth)
                ]
            case ast.Attribute(attr="strip" | "lstrip" | "rstrip" | "replace", value=value):
                return self.texts(value, depth)
            case ast.Attribute(attr="join", value=ast.Constant()) if node.args and isinstance(
                node.args[0], ast.List | ast.Tuple
            ):
                return self.texts(node.args[0], depth)
            case ast.Name(id="dedent") | ast.Attribute(attr="dedent") if node.args:
                return self.texts(node.args[0], depth)
        return [HOLE]


#: Statements and expressions whose names are their own.
SCOPED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, but not what functions and classes in it have of their own."""
    if isinstance(node, SCOPED):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from in_scope(child)


def assigned(body: Sequence[ast.stmt]) -> dict[str, list[ast.expr]]:
    """The expressions that names get in a body, in order."""
    found: dict[str, list[ast.expr]] = {}
    for node in (one for stmt in body for one in in_scope(stmt)):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.value)
    return found


def whole(name: str, block: Sequence[ast.stmt]) -> list[ast.expr]:
    """What a name stands for after a block that assigns it and then only adds to it; or nothing."""
    parts = [
        one.value
        for one in block
        if (isinstance(one, ast.Assign) and name in map(ast.unparse, one.targets))
        or (isinstance(one, ast.AugAssign) and ast.unparse(one.target) == name)
    ]
    if len(parts) != len(assigned(block)[name]):  # some are added on a condition
        return []
    text = parts[0]
    for part in parts[1:]:
        text = ast.BinOp(text, ast.Add(), part)
    return [text]


def nearest(
    names: Mapping[str, list[ast.expr]], node: ast.AST, stmt: ast.stmt
) -> dict[str, list[ast.expr]]:
    """The expressions of a function's names at a statement: the last ones in its own block count.

    A function that assigns `message` in each of its branches raises a different one in each.
    """
    blocks = (getattr(node, field, []) for field in ("body", "orelse", "finalbody"))
    block = next((one for one in blocks if isinstance(one, list) and stmt in one), [])
    before = block[: block.index(stmt)] if block else []
    last: dict[str, int] = {}
    for place, one in enumerate(before):
        if isinstance(one, ast.Assign):
            last |= {name.id: place for name in one.targets if isinstance(name, ast.Name)}
    found = dict(names)
    for name, values in assigned(before).items():
        if name in last:
            found[name] = assigned(before[last[name] :])[name]
        elif len(names.get(name, ())) > MOST_ASSIGNED:
            found[name] = values
    return found


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


#: Statement, function, exception, what led to it, and the texts of a message.
Row = tuple[ast.stmt, str, str, str, list[str]]


def messages(tree: ast.Module, module: Module) -> Iterator[Row]:
    """Every message of a file."""

    def visit(node: ast.AST, function: str, why: str) -> Iterator[Row]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                outer = dict(module.names)
                module.take(child.body)
                yield from visit(child, child.name, "")
                module.names = outer
                continue
            if isinstance(child, ast.ClassDef):
                for method, said, text in worded(child):
                    outer = dict(module.names)
                    module.names |= {
                        name: whole(name, method.body) or values
                        for name, values in assigned(method.body).items()
                    }
                    yield said, "__str__", child.name, "", module.texts(text)
                    module.names = outer
            outer = module.names
            if isinstance(child, ast.Raise | ast.Assert | ast.Expr):
                module.names = nearest(outer, node, child)
            if isinstance(child, ast.Raise) and (told := raised(child)) is not None:
                kind, args = told
                texts = module.texts(ast.Tuple(elts=args)) if args else [""]
                yield child, function, kind, why, texts
            elif isinstance(child, ast.Assert):
                texts = module.texts(child.msg) if child.msg is not None else [""]
                yield child, function, "AssertionError", "not " + ast.unparse(child.test), texts
            elif isinstance(child, ast.Expr) and (line := logged(child.value)) is not None:
                yield child, function, line[0], why, module.texts(line[1])
            module.names = outer
            deeper = ast.unparse(child.test) if isinstance(child, ast.If) else why
            yield from visit(child, function, deeper)

    return visit(tree, "<module>", "")


def worded(node: ast.ClassDef) -> Iterator[tuple[ast.FunctionDef, ast.stmt, ast.expr]]:
    """The words that an exception's class adds itself, with the method that adds them.

    They are what `__str__` returns, or what `__init__` stores or passes to `Exception`.
    """
    is_exception = any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)] if is_exception else []
    for method in methods:
        for stmt in ast.walk(method):
            match stmt:
                case ast.Return(value=ast.expr() as value) if method.name == "__str__":
                    yield method, stmt, value
                case ast.Assign(targets=[target], value=value) if (
                    method.name == "__init__" and ast.unparse(target) == "self.message"
                ):
                    yield method, stmt, value
                case ast.Expr(value=ast.Call(func=called, args=[value, *_])) if (
                    method.name == "__init__" and ast.unparse(called) == "super().__init__"
                ):
                    yield method, stmt, value


def raised(node: ast.Raise) -> tuple[str, list[ast.expr]] | None:
    """Name and arguments of the exception that a statement raises; None for one passed on."""
    call = node.exc
    args: list[ast.expr] = []
    if isinstance(call, ast.Call):
        args = [*call.args, *(word.value for word in call.keywords)]
        call = call.func
        if args and _class_of(call) == "" and _class_of(args[0]).endswith(("Error", "Exception")):
            call, *args = args  # `raise helper(ClassOfTheException, message)`
    name = _class_of(call)
    return (name, args) if name else None


def _class_of(node: ast.expr | None) -> str:
    """The exception's name if an expression is a class; "" if it is something else."""
    name = canonical(ast.unparse(node).rpartition(".")[2]) if node is not None else ""
    return name if name.isidentifier() and name[0].isupper() else ""


def logged(node: ast.expr) -> tuple[str, ast.expr] | None:
    """Kind and message of a call to a logger at the level of an error."""
    match node:
        case ast.Call(func=ast.Attribute(attr=level, value=value), args=[first, *_]) if (
            level in LOGGED and ast.unparse(value).lower().endswith(("logger", "log", "logging"))
        ):
            return f"log.{level}", first
    return None


def constants_of(trees: Mapping[str, ast.Module]) -> dict[str, str]:
    """Constants in capitals that have one text in the whole product."""
    found: dict[str, set[str]] = {}
    for tree in trees.values():
        for stmt in tree.body:
            if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
                name, value = stmt.targets[0].id, stmt.value
                if name.isupper():
                    text = value.value if isinstance(value, ast.Constant) else HOLE
                    found.setdefault(name, set()).add(str(text))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


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
