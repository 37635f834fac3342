"""Settings of Hugging Face's classes that the command passes or the script contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import LaunchCommand, Missing, ScriptCalls


class Chosen(NamedTuple):
    """A value that is chosen.

    Attributes:
        value: the value.
        said: where it is chosen, as the beginning of a sentence.
        line: line of the script; None = it is an option of the command.
    """

    value: str
    said: str
    line: int | None = None


def chosen(
    name: str, command: LaunchCommand | Missing, calls: ScriptCalls | Missing
) -> Iterator[Chosen]:
    """The last value of an option, and those that the script surely passes itself."""
    if isinstance(command, LaunchCommand):
        values = [value for option, value in command.script_options() if option == name]
        for value in values[-1:]:
            yield Chosen(value, f"`--{name} {value}` is passed")
    if isinstance(calls, ScriptCalls):
        for one in calls.settings:
            if one.argument == name:
                where = f"line {one.line} of `{calls.script}`"
                yield Chosen(one.value, f'{where} passes `{name}="{one.value}"`', one.line)
