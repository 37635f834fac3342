"""Edits of a config as text: whatever is not edited, comments included, stays as it is.

Lines are those of the `lines` of `DsConfig`; keys are dotted. Values of scalars must be on the
line of their key, as in every config seen so far; an edit that cannot be made is None.
"""

from __future__ import annotations

import json
import re

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,{}\[\]#"'/]+)"""


def _key(name: str) -> str:
    return rf"""(?P<head>(?:^|[{{,]|\s)\s*["']?){re.escape(name)}(?P<mid>["']?\s*:\s*)"""


def renamed(text: str, line: int, name: str, new: str) -> str | None:
    r"""The text with one key renamed.

    >>> renamed('{\n  "param": {} // x\n}', 2, "param", "params")
    '{\n  "params": {} // x\n}'
    """
    lines = text.splitlines(keepends=True)
    made, count = re.subn(_key(name), rf"\g<head>{new}\g<mid>", lines[line - 1], count=1)
    if not count:
        return None
    lines[line - 1] = made
    return "".join(lines)


def revalued(text: str, line: int, name: str, value: object) -> str | None:
    r"""The text with another scalar as the value of a key.

    >>> revalued('{"a": 1, "stage": 2, // z\n"b": 3}', 1, "stage", 3)
    '{"a": 1, "stage": 3, // z\n"b": 3}'
    """
    lines = text.splitlines(keepends=True)
    pattern = _key(name) + rf"(?P<old>{_VALUE})"
    found = re.search(pattern, lines[line - 1])
    if found is None:
        return None
    start, end = found.span("old")
    lines[line - 1] = lines[line - 1][:start] + json.dumps(value) + lines[line - 1][end:]
    return "".join(lines)


def _end_of_value(text: str, start: int) -> int | None:
    """Where the value that begins at an offset ends."""
    if start >= len(text):
        return None
    if text[start] not in "{[":
        found = re.match(_VALUE, text[start:])
        return start + found.end() if found else None
    depth, at = 0, start
    while at < len(text):
        if text.startswith(("//", "#"), at):
            at = text.find("\n", at)
            if at < 0:
                return None
        elif text.startswith("/*", at):
            at = text.find("*/", at) + 1
            if at < 1:
                return None
        elif text[at] in "\"'":
            found = re.match(_VALUE, text[at:])
            if found is None:
                return None
            at += found.end() - 1
        elif text[at] in "{[":
            depth += 1
        elif text[at] in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None


def without(text: str, line: int, name: str) -> str | None:
    r"""The text without a key and its value, and without the comma that is then superfluous.

    >>> without('{\n  "a": 1,\n  "offload_param": {\n    "device": "cpu" // }\n  },\n  "b": 2\n}', 3,
    ...         "offload_param")
    '{\n  "a": 1,\n  "b": 2\n}'
    >>> without('{"a": 1, "b": 2}', 1, "b")
    '{"a": 1}'
    """
    offset = sum(len(row) for row in text.splitlines(keepends=True)[: line - 1])
    length = len(text[offset:].split("\n", 1)[0])
    found = re.search(_key(name), text[offset : offset + length])
    if found is None:
        return None
    begin = offset + found.end("head")
    if begin and text[begin - 1] in "\"'":
        begin -= 1
    end = _end_of_value(text, offset + found.end())
    if end is None:
        return None
    after = re.match(r"[ \t]*,", text[end:])
    if after:
        end += after.end()
    else:
        # it was the last of its object: the comma before it goes too
        before = re.search(r",(?P<rest>[ \t\r\n]*)\Z", text[:begin])
        if before:
            text = text[: before.start()] + text[before.start() + 1 :]
            begin, end = begin - 1, end - 1
            if "\n" not in before["rest"]:
                begin -= len(before["rest"])
    row = text.rfind("\n", 0, begin) + 1
    rest = re.match(r"[ \t]*(?://[^\n]*|#[^\n]*)?(?:\r?\n|\Z)", text[end:])
    if rest and not text[row:begin].strip():
        return text[:row] + text[end + rest.end() :]  # it had its lines to itself
    return text[:begin] + text[end:].removeprefix(" " if after else "")
