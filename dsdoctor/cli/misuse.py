"""click's errors in dsdoctor's form: what was given, what was expected, what to do."""

from __future__ import annotations

import difflib
import re

import click

#: Messages of click's types, and what they expect.
_VALUES = (
    (re.compile(r"'?(?P<value>.*?)'? is not in the range (?P<range>\S+)\."), "{range}"),
    (re.compile(r"'(?P<value>.*)' is not one of (?P<names>.*)\.", re.DOTALL), "one of {names}"),
    (re.compile(r"'(?P<value>.*)' is not a valid (?P<kind>.*)\.", re.DOTALL), "a {kind}"),
    (re.compile(r"(?P<value>.*) is not a (?P<kind>finite number)\."), "a {kind}"),
)
#: click's words for arguments that a command does not take.
_EXTRA = re.compile(r"^Got unexpected extra (arguments?) \((.*)\)$")
_RANGES = (
    (re.compile(r"(?P<low>.+)<=x<=(?P<high>.+)"), "{low} to {high}"),
    (re.compile(r"x>=(?P<low>.+)"), "{low} or more"),
    (re.compile(r"x>(?P<low>.+)"), "more than {low}"),
)


def line_of(error: click.ClickException) -> str:
    """The error in one line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return _plain(error.format_message())
    path = context.command_path
    if isinstance(error, click.MissingParameter):
        return f"`{path}` requires {_name_of(error)}; `{path} --help` shows its options"
    if isinstance(error, click.BadParameter):
        return _wrong_value(error)
    words, kind, known = "", "", []
    if isinstance(error, click.NoSuchOption):
        known = [name for one in context.command.params for name in one.opts if name[:2] == "--"]
        known += ["--json"] if "--format" in known else []
        words, kind = error.option_name, "an option"
        if words == "--json" and words in known:
            return "`--json` takes no value; pass it alone"
    elif isinstance(context.command, click.Group) and error.message.startswith("No such command"):
        known = context.command.list_commands(context)
        words, kind = error.message.split("'")[1], "a command"
    if not kind:
        return f"{_plain(error.format_message())}; `{path} --help` shows its options"
    # the dashes, which all options share, are no likeness
    by_word = {name.lstrip("-"): name for name in known}
    near = difflib.get_close_matches(words.lstrip("-"), by_word, n=1, cutoff=0.5)
    meant = f"; did you mean `{by_word[near[0]]}`?" if near else ";"
    return f"`{words}` is not {kind} of `{path}`{meant} `{path} --help` lists all"


def _wrong_value(error: click.BadParameter) -> str:
    name = _name_of(error).strip("`")
    for pattern, expected in _VALUES:
        if found := pattern.fullmatch(error.message):
            parts = found.groupdict()
            value = parts["value"].removesuffix(".0")  # a float is quoted as Python writes it
            given = f"{name} {value}" if name.startswith("-") else value
            if "range" in parts:
                parts["range"] = range_in_words(parts["range"])
            return f"`{given}`: expected {_plain(expected.format_map(parts))}"
    return f"`{name}`: {_plain(error.message)}"


def range_in_words(text: str) -> str:
    """A range of click in plain words.

    >>> range_in_words("1<=x<=64"), range_in_words("x>=1"), range_in_words("x>0")
    ('1 to 64', '1 or more', 'more than 0')
    """
    for pattern, words in _RANGES:
        if found := pattern.fullmatch(text):
            return words.format_map(found.groupdict())
    return text


def _name_of(error: click.BadParameter) -> str:
    if isinstance(error.param, click.Option):
        return f"`{max(error.param.opts, key=len)}`"
    return f"`{error.param.human_readable_name}`" if error.param is not None else ""


def _plain(message: str) -> str:
    """Backticks for quotes, no capital at the beginning and no full stop.

    >>> _plain("Got unexpected extra arguments (a b)")
    'unexpected arguments `a b`'
    >>> _plain("Option '--every' requires an argument.")
    'option `--every` requires an argument'
    """
    message = _EXTRA.sub(r"unexpected \1 `\2`", message)
    message = message[:1].lower() + message[1:] if message[1:2].islower() else message
    return re.sub(r"'([^']*)'", r"`\1`", message).rstrip(".")
