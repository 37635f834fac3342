"""The messages of a Python source, for the error index.

An expression that makes a message becomes texts with holes for the values that it prints.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from dsdoctor.logs.error_lookup import canonical

#: A place for a value, in a template.
HOLE = "\x00"
#: Texts that one expression may become at most.
MOST_TEXTS = 6
#: How deep an expression may be nested.
DEEPEST = 6
#: How many times a name may be assigned before its texts are left out.
MOST_ASSIGNED = 8
LOGGED = {"error", "critical", "exception", "fatal"}
PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}")


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
