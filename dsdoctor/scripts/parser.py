"""The parser of a script's command line, read from its syntax tree: nothing of the script is run.

Only parsers that the script states word for word are read: one `argparse.ArgumentParser`, or one
`HfArgumentParser` or `TrlParser`. Whatever could add options that are not seen here, such as a
function of another module that is given the parser, means that the parser is not known.

Sources: CPython 3.10 to 3.14 Lib/argparse.py; deepspeed 0.9.0 to 0.19.8 `__init__.py`
(`add_config_arguments`); transformers 4.30 to 5.24 hf_argparser.py; read 2026-11-29.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, NoReturn

from dsdoctor.scripts.reach import dotted

#: What `deepspeed.add_config_arguments` adds.
_OF_DEEPSPEED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--deepspeed", {"action": "store_true"}),
    ("--deepspeed_config", {}),
    ("--deepscale", {"action": "store_true"}),
    ("--deepscale_config", {}),
    ("--deepspeed_mpi", {"action": "store_true"}),
)
_ADDS = "add_config_arguments"
#: Methods of a parser that add no option but what their arguments say.
_HARMLESS = frozenset(
    {"add_argument", "add_argument_group", "add_mutually_exclusive_group", "parse_args",
     "set_defaults", "get_default", "print_help", "format_help", "print_usage", "format_usage",
     "error", "exit"}
)  # fmt: skip
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
#: What changes the words that a parser reads.
_CHANGES = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "__setitem__"})
_SWITCHES = frozenset({"store_true", "store_false", "append", "count", "store"})
_TYPES: dict[str, type] = {"int": int, "float": float, "str": str}
#: Parsers that take their options from dataclasses.
_OF_CLASSES = frozenset({"HfArgumentParser", "TrlParser"})
_PACKAGES = frozenset({"transformers", "trl"})
#: More options than any script has.
_MOST = 1000
#: Through how many variables and functions a parser is followed.
_MOST_STEPS = 8


class UnknownParserError(Exception):
    """The script's parser is not known; the message says why."""


class RefusedError(Exception):
    """The parser rejects the arguments, in its own words."""


class Classes(NamedTuple):
    """Dataclasses whose fields are the options of a script.

    Attributes:
        names: the classes, as the script writes them: `TrainingArguments`, `trl.SFTConfig`.
        has_config: the parser also takes `--config FILE`.
        sets_defaults: the script gives fields other defaults, so none may be required.
    """

    names: tuple[str, ...]
    has_config: bool
    sets_defaults: bool


class Parser(argparse.ArgumentParser):
    """The script's parser again; what it rejects is raised instead of printed."""

    def flags(self) -> Collection[str]:
        """Every way to write an option."""
        return self._option_string_actions.keys()

    def error(self, message: str) -> NoReturn:
        """Raises the message."""
        raise RefusedError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Ends nothing: the script would end here, by itself."""
        raise RefusedError(message or f"status {status}")


def parser_of(tree: ast.Module) -> Parser | Classes:
    """The parser that a script states.

    Raises:
        UnknownParserError: it states none, several, or one that is not known as a whole.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    of_classes = [call for call in calls if _last_name(call.func) in _OF_CLASSES]
    plain = [call for call in calls if _last_name(call.func) == "ArgumentParser"]
    if len(of_classes) + len(plain) != 1:
        raise UnknownParserError("the script has no parser, or several")
    words_are_untouched(tree)
    if of_classes:
        _is_the_package_s(tree, dotted(of_classes[0].func))
        return _classes(of_classes[0], calls)
    return _plain(tree, plain[0], calls)


def is_parser(node: ast.AST) -> bool:
    """Whether a call makes a parser of a command line."""
    return isinstance(node, ast.Call) and _last_name(node.func) in {"ArgumentParser", *_OF_CLASSES}


def _last_name(node: ast.AST) -> str:
    """What is called: `parse_args` of `get().parse_args`."""
    return node.attr if isinstance(node, ast.Attribute) else dotted(node)


def words_are_untouched(tree: ast.Module) -> None:
    """Returns if a parser reads the words of the command line as they are.

    Raises:
        UnknownParserError: the script may change them.
    """
    for node in ast.walk(tree):
        held: ast.expr | None = None
        if isinstance(node, ast.ImportFrom) and node.module == "sys":
            if any(name.name == "argv" for name in node.names):
                raise UnknownParserError("the script imports `argv`")
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            held = node
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            held = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held = node.func.value if node.func.attr in _CHANGES else None
        if held is not None and dotted(held) == "sys.argv":
            raise UnknownParserError("the script changes `sys.argv`")


def _is_the_package_s(tree: ast.Module, called: str) -> None:
    """Whether the parser of dataclasses is that of transformers or trl, not one derived from it."""
    root, dot, _ = called.partition(".")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not dot and not node.level:
            package = (node.module or "").partition(".")[0]
            names = {n.name for n in node.names if n.asname in {None, n.name}}
            if root in names and package in _PACKAGES:
                return
        if isinstance(node, ast.Import) and root in _PACKAGES & {n.name for n in node.names}:
            return
    raise UnknownParserError("the parser is not that of transformers or trl")


def _classes(call: ast.Call, calls: list[ast.Call]) -> Classes:
    given = call.args[0] if call.args else None
    for keyword in call.keywords:
        if keyword.arg != "dataclass_types":
            raise UnknownParserError("the parser has options of its own")
        given = keyword.value
    parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    names = tuple(dotted(part) if part is not None else "" for part in parts)
    if not all(names):
        raise UnknownParserError("the parser's classes are not known")
    used = {name for one in calls if (name := _last_name(one.func)).startswith("parse_")}
    if not used & {"parse_args_into_dataclasses", "parse_args_and_config"}:
        raise UnknownParserError("the parser does not read the command line as a whole")
    methods = {_last_name(one.func) for one in calls}
    if methods & {"add_argument", "add_argument_group", "add_subparsers", "parse_known_args"}:
        raise UnknownParserError("the parser has options of its own")
    for one in calls:
        if _last_name(one.func).startswith("parse_args") and (one.args or one.keywords):
            raise UnknownParserError("the parser reads other arguments, or leaves some over")
    return Classes(names, _last_name(call.func) == "TrlParser", "set_defaults" in methods)


def _plain(tree: ast.Module, made: ast.Call, calls: list[ast.Call]) -> Parser:
    if dotted(made.func) not in _names_of_argparse(tree):
        raise UnknownParserError("the parser is not of argparse")
    given = {keyword.arg for keyword in made.keywords}
    if given - {"description", "epilog", "usage", "prog", "add_help", "formatter_class",
                "argument_default", "allow_abbrev", "conflict_handler"}:  # fmt: skip
        raise UnknownParserError("the parser has options of its own")
    local = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    held = _holders(tree, made, local)
    parser = Parser(prog="", add_help=False, conflict_handler="resolve", exit_on_error=True)
    parser.add_argument("-h", "--help", action="store_true")
    reads, in_parts = False, False
    for call in calls:
        name = _last_name(call.func)
        receiver = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if receiver in held.names and name not in _HARMLESS:
            raise UnknownParserError(f"`{name}` of the parser is not known")
        if name in {"parse_known_args", "add_subparsers", "parse_intermixed_args"}:
            raise UnknownParserError(f"`{name}` of the parser is not known")
        if name == "parse_args":
            if call.args or call.keywords:
                raise UnknownParserError("the parser reads other arguments")
            reads = True
        is_passed = any(map(held.is_held, _arguments(call)))
        if is_passed and name == _ADDS:
            for flag, options in _OF_DEEPSPEED:
                parser.add_argument(flag, **options)
        elif is_passed and name not in local:
            raise UnknownParserError(f"`{name}` may add options")
        else:
            in_parts |= is_passed
    if not reads:
        raise UnknownParserError("the script parses nothing")
    for call, surely in _additions(tree, sure=not in_parts):
        _add(parser, call, surely=surely)
    return parser


def _names_of_argparse(tree: ast.Module) -> set[str]:
    """What a script calls `argparse.ArgumentParser`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {
                f"{name.asname or name.name}.ArgumentParser"
                for name in node.names
                if name.name == "argparse"
            }
        elif isinstance(node, ast.ImportFrom) and node.module == "argparse":
            found |= {n.asname or n.name for n in node.names if n.name == "ArgumentParser"}
    return found


def _holders(tree: ast.Module, made: ast.Call, local: dict[str, ast.FunctionDef]) -> _Held:
    """Variables, parameters and functions that hold the parser or a group of its options.

    Raises:
        UnknownParserError: no variable holds it, or it is passed on in too many steps.
    """
    held = _Held(set(), set())
    for _ in range(_MOST_STEPS):
        before = len(held.names) + len(held.functions)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                if node.value is made or held.is_held(node.value):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    held.names.update(map(dotted, targets))
            elif isinstance(node, ast.Call) and any(map(held.is_held, _arguments(node))):
                function = local.get(_last_name(node.func))
                taken = () if function is None else (*function.args.args, *function.args.kwonlyargs)
                held.names.update(parameter.arg for parameter in taken)
        held.functions.update(
            name
            for name, function in local.items()
            if any(
                isinstance(part, ast.Return) and part.value is not None and held.is_held(part.value)
                for part in ast.walk(function)
            )
        )
        if not held.names or "" in held.names:
            raise UnknownParserError("the parser is not held by a variable")
        if len(held.names) + len(held.functions) == before:
            return held
    raise UnknownParserError("the parser is passed on in too many steps")


class _Held(NamedTuple):
    """What holds the parser.

    Attributes:
        names: variables and parameters.
        functions: functions of the script that return it.
    """

    names: set[str]
    functions: set[str]

    def is_held(self, node: ast.expr) -> bool:
        """Whether a value is the parser, a group of it, or what such a function returns."""
        if not isinstance(node, ast.Call):
            return dotted(node) in self.names
        name = _last_name(node.func)
        if name in _GROUPS and isinstance(node.func, ast.Attribute):
            return dotted(node.func.value) in self.names
        return name == _ADDS or name in self.functions


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _additions(node: ast.AST, *, sure: bool) -> Iterator[tuple[ast.Call, bool]]:
    """The calls of `add_argument`, each with whether it runs whatever the case."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _last_name(child.func) == "add_argument":
            yield child, sure
        inner = sure and not isinstance(child, (ast.If, ast.For, ast.While, ast.Try, ast.IfExp))
        yield from _additions(child, sure=inner)


def _add(parser: Parser, call: ast.Call, *, surely: bool) -> None:
    """Adds an option as the script does; what is not a literal is left open."""
    names = [part.value for part in call.args if isinstance(part, ast.Constant)]
    flags = [name for name in names if isinstance(name, str)]
    if not flags or len(flags) != len(call.args):
        raise UnknownParserError("an option's name is not a literal")
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given:
        raise UnknownParserError("an option's settings are not literals")
    options: dict[str, Any] = {}
    action = given.get("action")
    if action is not None:
        word = action.value if isinstance(action, ast.Constant) else _last_name(action)
        if word == "BooleanOptionalAction":
            options["action"] = argparse.BooleanOptionalAction
        elif word in {"store_const", "append_const", "version", "help"}:
            options["action"] = "store_true"
        elif word in _SWITCHES:
            options["action"] = word
        else:
            raise UnknownParserError("an option has an action of its own")
    takes_value = options.get("action", "store") in {"store", "append"}
    if takes_value:
        options |= _of_value(given)
    if flags[0].startswith("-"):
        required = given.get("required")
        is_required = isinstance(required, ast.Constant) and required.value is True
        options["required"] = is_required and surely
    elif not surely:
        options["nargs"] = "*"
    if len(parser.flags()) > _MOST:
        raise UnknownParserError("the script has too many options")
    try:
        parser.add_argument(*flags, **options)
    except (ValueError, TypeError, IndexError, argparse.ArgumentError) as error:
        raise UnknownParserError(str(error)) from error


def _of_value(given: dict[str | None, ast.expr]) -> dict[str, Any]:
    """What says which values an option takes."""
    options: dict[str, Any] = {}
    known = given.get("type")
    if isinstance(known, ast.Name) and known.id in _TYPES:
        options["type"] = _TYPES[known.id]
    if "nargs" in given:
        nargs = given["nargs"]
        if not isinstance(nargs, ast.Constant) or nargs.value not in {"?", "*", "+", *range(1, 9)}:
            raise UnknownParserError("it is not known how many values an option takes")
        options["nargs"] = nargs.value
    if "choices" in given and (known is None or "type" in options):
        with contextlib.suppress(ValueError, TypeError):  # not literal, or no list
            options["choices"] = list(ast.literal_eval(given["choices"]))
    return options
