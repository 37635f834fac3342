"""Commands in YAML of other programs: containers of Kubernetes and Compose, steps of CI, tasks.

Pure: a document is composed, not constructed, so that each command has its line.

Sources: Kubernetes 1.20 to 1.34 Container (`command`, `args`); the Compose specification
(`entrypoint`, `command`); GitHub's and GitLab's workflow syntax (`run`, `script`); SkyPilot 0.10
(`run`), dstack 0.19 (`commands`). Read 2026-11-29.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

#: Keys whose values are text for a shell, or a list of such lines.
_SHELL_KEYS = ("run", "script", "before_script", "commands")
#: Keys that make up the command of a container, in this order.
_CONTAINER_KEYS = ("entrypoint", "command", "args")
_MOST_NODES = 20_000
_SHELL_OPTION = re.compile(r"-\w*c")


class YamlCommand(NamedTuple):
    """A text for a shell.

    Attributes:
        before: the line before its first one.
        text: the text.
        holder: the first line of the mapping whose command it is.
        for_shell: a shell reads it; otherwise it is a list of words, joined.
    """

    before: int
    text: str
    holder: int
    for_shell: bool = True


#: Fills in the variables of a container's command: the first line of its mapping, and the text.
Fill = Callable[[int, str], str]


def commands_of(
    documents: Sequence[Any], fill: Fill = lambda _, text: text
) -> Iterator[YamlCommand]:
    r"""Texts for a shell in documents (`yaml_text.documents`).

    Args:
        documents: the documents.
        fill: fills in the words of a container's command before they are joined.

    >>> from dsdoctor.yaml_text import documents
    >>> list(commands_of(documents("jobs:\n  a:\n    run: |\n      torchrun t.py\n")))
    [YamlCommand(before=3, text='torchrun t.py\n', holder=3, for_shell=True)]
    >>> list(commands_of(documents("spec:\n  command: [torchrun]\n  args: ['t.py']\n")))
    [YamlCommand(before=1, text='torchrun t.py', holder=2, for_shell=False)]
    """
    import yaml  # noqa: PLC0415  # only for YAML

    rest: list[Any] = [*documents][::-1]
    seen: set[int] = set()
    while rest and len(seen) < _MOST_NODES:
        node = rest.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            rest += node.value[::-1]
        elif isinstance(node, yaml.MappingNode):
            held = {str(key.value): value for key, value in node.value}
            holder = int(node.start_mark.line) + 1
            filled = functools.partial(fill, holder)
            for before, words, for_shell in _of_container(held, filled):
                yield YamlCommand(before, words, holder, for_shell)
            for key in _SHELL_KEYS:
                for before, words in _of_shell(held.get(key)):
                    yield YamlCommand(before, words, holder)
            rest += [value for _, value in node.value][::-1]


def _of_shell(node: Any) -> Iterator[tuple[int, str]]:
    if node is None:
        return
    if isinstance(node.value, str):
        yield _line_before(node), node.value
    elif node.value and all(isinstance(getattr(one, "value", 0), str) for one in node.value):
        yield _line_before(node.value[0]), "\n".join(one.value for one in node.value)


def _of_container(
    held: dict[str, Any], fill: Callable[[str], str]
) -> Iterator[tuple[int, str, bool]]:
    nodes: list[Any] = []
    words: list[str] = []
    for key in _CONTAINER_KEYS:
        node = held.get(key)
        if node is None:
            continue
        if isinstance(node.value, str):  # Compose splits it
            try:
                split = shlex.split(fill(node.value))
            except ValueError:
                return
            words += split
            nodes += [node] * len(split)
            continue
        for item in node.value if isinstance(node.value, list) else ():
            if not isinstance(getattr(item, "value", None), str):
                return
            words.append(fill(item.value))
            nodes.append(item)
    if not words:
        return
    if " " in words[0] and isinstance(nodes[0].value, str) and len(nodes) > 1:
        yield _line_before(nodes[0]), "\n".join(words), True  # lines of a script, as of amlt
        return
    for place, word in enumerate(words[:-1]):
        if _SHELL_OPTION.fullmatch(word) and place and "sh" in words[place - 1]:
            inner = nodes[place + 1]
            own = fill(inner.value) == words[place + 1]
            yield _line_before(inner if own else nodes[0]), words[place + 1], True
            # after the shell's own name, what its text starts as "$@"
            if '"$@"' in words[place + 1] and len(words) > place + 3:
                yield _line_before(nodes[place + 3]), shlex.join(words[place + 3 :]), False
            return
    yield _line_before(nodes[0]), shlex.join(words), False


def _line_before(node: Any) -> int:
    """The number of the line before the first one of a text."""
    below = 1 if node.style in ("|", ">") else 0  # a block begins below its mark
    return int(node.start_mark.line) + below
