"""What a shell answers about its variables: `echo $NAME`, `env`, `printenv`, `env | grep NCCL`.

Lines `export NAME=VALUE` are read with the command that they precede (`launch_lines`), and, typed
at a prompt, with a `python` typed below them. Alone, they are as often what somebody was advised
to try, and count only if the text says that they were set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Environment
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import passages
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.shell_passages import typed_at
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.environment import allowed

_NAMES = r"[A-Za-z_][A-Za-z0-9_]{1,60}"
#: At a prompt, or as the whole line.
_PROMPT = r"(?:^|.{0,80}[$#%>❯]\s)\s*"
_ECHO = re.compile(rf"{_PROMPT}echo \"?\$\{{?(?P<name>{_NAMES})\}}?\"?\s*$")
_LISTING = re.compile(rf"{_PROMPT}(?:env|printenv|set)\s*(?:\|\s*(?:e|f)?grep\s[^|]{{1,80}})?$")
_PRINTENV = re.compile(rf"{_PROMPT}printenv (?P<name>{_NAMES})\s*$")
#: Of Windows: `echo %NAME%`, `$env:NAME`; `set PREFIX` at a prompt; `Get-ChildItem Env:`.
_ECHO_WINDOWS = re.compile(
    r"(?:PS )?[A-Za-z]:\\[^>]{0,100}>\s*(?:echo\s+)?(?:%(?P<name>[A-Za-z_]\w{1,60})%"
    r"|\$env:(?P<env>[A-Za-z_]\w{1,60}))\s*$"
)
_LISTING_WINDOWS = re.compile(
    r"[A-Za-z]:\\[^>]{0,100}>\s*set(?:\s+[A-Za-z_]\w*)?(?:\s*\|\s*find(?:str)?\s.{1,80})?\s*$"
)
_POWERSHELL = re.compile(
    r"PS [^>]{0,100}>\s*(?:Get-ChildItem|gci|dir|ls)\s+[Ee]nv:\S{0,40}"
    r"(?:\s*\|\s*(?:findstr|sls|Select-String)\s.{1,80})?\s*$"
)
_SET_WINDOWS = re.compile(rf"(?P<name>{_NAMES})=(?P<value>\S.{{0,400}})$")
_CELLS = re.compile(rf"(?P<name>{_NAMES})\s{{2,}}(?P<value>\S.{{0,400}})$")
_MOST_ROWS = 500
_HEAD = re.compile(r"(?:Name\s+Value|-{3,}\s+-{3,})?\s*$")
_PATH = re.compile(r"\s*(?P<value>[A-Za-z]:\\[^\"<>|]{0,300}|[\w.,:-]{1,200})\s*$")
_SET = re.compile(rf"\s*(?P<name>{_NAMES})=(?P<value>\S{{0,400}})\s*$")
#: `export NAME=VALUE`, or without `export` in a file of variables.
_EXPORT = re.compile(
    r"\s*(?:export\s+)?(?P<name>[A-Za-z_]\w{1,60})=(?P<value>'[^']{0,400}'|\"[^\"]{0,400}\"|\S{0,400})\s*$"
)
#: What says that the variables below are in effect.
_DECLARED = re.compile(
    r"(?i)\b(?:env(?:ironment)?\s*(?:variables?|vars?|settings?)?|variables?)\b.{0,40}"
    r"\b(?:set|used|in effect|are|is|below|following|follows)\b"
    r"|\b(?:I|we)(?:'ve| have)? (?:set|export|exported|use|used)\b.{0,60}"
    r"\b(?:env|variables?|vars?)\b"
    r"|\b(?:my|our)\s(?:current\s)?(?:NCCL\s)?(?:env\w*|variables|vars|settings)\b[^.?]{0,40}:\s*$"
    r"|\b(?:in|from) (?:my|our|the) \S{0,20}(?:bashrc|zshrc|profile|job script|sbatch)\b"
    r"|环境变量(?:如下|为|是|设置)"
)
_TYPED = re.compile(r"export\s+(?P<name>[A-Za-z_]\w{1,60})=(?P<value>[\w./,:@-]{0,200})\s*$")
_PYTHON = re.compile(r"(?:i?python[\d.]{0,5})\s*$|(?:i?python[\d.]{0,5}) -c ['\"]")
_ANY = re.compile(r"\s*[A-Za-z_]\w{0,60}=")
#: An answer is a path, a list, a number or a word, never a sentence or the next command.
_VALUE = re.compile(r"\s*(?P<value>[\w./,:+^=@~-]{1,400})\s*$")


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        below = lines[place + 1 : place + 2]
        asked = _ECHO.match(line.text) or _PRINTENV.match(line.text)
        if asked and below:
            answer = _VALUE.match(below[0].text)
            if answer and not below[0].fence:
                _state(asked["name"], answer["value"], below[0], into)
        elif _LISTING.match(line.text):
            _listed(lines, place + 1, into)
        elif "\\" in line.text:
            _windows(lines, place, into)
    for passage in passages(lines):
        if passage.fenced and passage.closed and _DECLARED.search(passage.lead):
            _declared(passage.lines, into)
        _session(passage.lines, lines, into)


def _windows(lines: Sequence[Line], place: int, into: Statements) -> None:
    """What `cmd` and PowerShell answer; a value that is cut in a table ends with dots."""
    line = lines[place]
    asked = _ECHO_WINDOWS.match(line.text)
    below = lines[place + 1 : place + 2] if asked else ()
    if asked and below:
        answer = _PATH.match(below[0].text)
        if answer and not below[0].fence:
            _state(asked["name"] or asked["env"], answer["value"], below[0], into)
        return
    form = (
        _SET_WINDOWS
        if _LISTING_WINDOWS.match(line.text)
        else _CELLS
        if _POWERSHELL.match(line.text)
        else None
    )
    for row in lines[place + 1 : place + _MOST_ROWS] if form else ():
        found = form.match(row.text) if form else None
        if found:
            _state(found["name"], found["value"].strip(), row, into)
        elif not _HEAD.match(row.text):
            return


def _declared(lines: Sequence[Line], into: Statements) -> None:
    """A block of nothing but variables, each with a value of its own."""
    found: dict[str, tuple[str, Line]] = {}
    for line in lines:
        if not line.text.strip() or line.text.lstrip().startswith("#"):
            continue
        row = _EXPORT.match(line.text)
        if row is None or row["name"] in found:
            return
        found[row["name"]] = (row["value"].strip("'\""), line)
    for name, (value, line) in found.items():
        _state(name, value, line, into)


def _session(lines: Sequence[Line], text: Sequence[Line], into: Statements) -> None:
    """Variables typed at prompts directly above Python, which printed something."""
    found: dict[str, tuple[str, Line]] = {}
    for line in lines:
        command = typed_at(line)
        row = _TYPED.match(command)
        if row:
            found[row["name"]] = (row["value"], line)
        elif found and _PYTHON.match(command):
            if any(other.number > line.number and other.text.strip() for other in text):
                for name, (value, told) in found.items():
                    _state(name, value, told, into)
            return
        elif line.text.strip():
            found = {}


def _listed(lines: Sequence[Line], place: int, into: Statements) -> None:
    for line in lines[place:]:
        if line.fence or not _ANY.match(line.text):
            return
        found = _SET.match(line.text)
        if found:
            _state(found["name"], found["value"], line, into)


def _state(name: str, value: str, line: Line, into: Statements) -> None:
    """States a variable that a snapshot may contain, unless its value was left out."""
    if allowed(name) and not is_placeholder(value):
        into.state(Environment, f"variables.{name}", value, line)


READER = Reader("env", _read)
