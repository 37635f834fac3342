"""Which lines of a passage are a shell's: what was typed, a script, a bare command.

Assignments that precede a command in the same place belong to it; below its output they do not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage, is_advice, says_own
from dsdoctor.probes.command_options import launches_at
from dsdoctor.probes.command_tables import PROGRAMS, RUNNERS, TRAINERS, WRAPPERS

#: What shells, notebooks and `set -x` print before a command. A bare `#` begins a comment.
_PROMPT = re.compile(
    r"\s*(?:\([\w.+ -]{1,40}\)\s*){0,3}"
    r"(?:(?:\[[^\]]{1,80}\]|[\w.-]{1,40}@[\w.-]{1,60}[^$#%>❯]{0,100}|(?:ba|z)?sh-[\d.]{1,6}"
    r"|PS [A-Za-z]:[^>]{0,120}|[A-Za-z]:\\[^>]{0,120})\s*[$#%>❯]"
    r"|(?:[~/][\w./~-]{0,100}\s*)?[$%❯➜](?=\s)|\+{1,3}(?=\s)|(?:In ?\[\d{0,4}\]: ?)?!)"
    r"\s*(?P<command>\S.*)$"
)
#: An assignment before a command.
_ASSIGNED = re.compile(r"\s*[A-Za-z_]\w{0,60}=(?:\"[^\"]*\"|'[^']*'|[^\s'\"])*(?=\s)")
_MOST_ASSIGNED = 30
#: Characters after them in which the launcher's name is found.
_LONGEST_HEAD = 600
#: A line without any of these starts no job.
_NAMED = re.compile("|".join(sorted({*map(re.escape, {*PROGRAMS, *TRAINERS}), "python"})))
#: Programs that start another one.
_STARTERS = frozenset({*WRAPPERS, *RUNNERS})
#: Programs that start a command of their arguments.
CONTAINERS = frozenset({"docker", "podman", "nerdctl", "singularity", "apptainer"})
#: Other commands that people type around a launch.
_FOLLOWED = re.compile(
    rf"\s*(?:sudo\s+)?(?:(?:{'|'.join(sorted(CONTAINERS))})\s+(?:container\s+)?(?:run|exec)\s|(?:ba)?sh\s+-\w?c\s)"
)
_USUAL = re.compile(
    r"(?:cat|bash|sh|source|sbatch|export|cd|conda|sudo|python[\d.]*|pip3?|ls|nvidia-smi|vim?)\s|\./"
)
_OH_MY_ZSH = re.compile(r"\S{1,60}\s+git:\([^)]{0,60}\)\s*(?:✗\s*)?")
#: Lines of a script that set something for the lines below.
_SETS = re.compile(
    r"\s*(?:(?:export|unset|setenv|%env|cd|source|\.|module|ulimit|echo|mkdir|conda\s+activate|#)\s"
    r"|set\s+[-+]|set\s+[A-Za-z_]\w*=|\$env:|#SBATCH|#!|#$"
    r"|[A-Za-z_]\w{0,60}=(?:\"[^\"]*\"|'[^']*'|[^\s'\"]*)\s*$|$)"
)
_CSH = re.compile(r"\s*setenv\s+(?P<name>[A-Za-z_]\w*)\s+(?P<value>\S+)\s*$")
_OTHER_SHELL = re.compile(
    r"\s*(?:set\s+|%env\s+|\$env:)(?P<name>[A-Za-z_]\w*)\s*(?:=|\s)\s*(?P<value>\S+)\s*$"
)
#: A command after a colon.
_TOLD = re.compile(r"\s*(?P<before>[^\s:`\"][^:`\"]{0,79}):\s+(?P<code>\S.*)")
#: One piece of code in a line.
_INLINE = re.compile(r"(?P<before>[^`]{0,200})`(?P<code>[^`]{1,2000})`(?P<after>[^`]{0,200})")
#: What a command that failed did, after it.
_ENDED = re.compile(
    r" (?:always |just |still |then |only |now )?(?:fails|failed|hangs|hung|crash(?:es|ed)|died"
    r"|dies|stops|gives (?:me )?(?:an? |the )?(?:\w+ )?error|runs (?:only )?on (?:the |my )?CPU"
    r"|got killed|is killed|never (?:starts|ends|finishes)|throws|segfaults|times out)\b"
)
#: A line of words, as people write them, is no command.
_SENTENCE = re.compile(r"[.?!,:;]$|[—–]")


def shell_lines_of(passage: Passage) -> tuple[list[Line], bool]:
    """The lines of a passage that a shell ran, as one script, and whether the last is complete."""
    lines = list(passage.lines)
    while lines and not lines[-1].text.strip():
        lines.pop()
    if not any(_NAMED.search(line.text) for line in lines) or _is_diff(passage):
        return [], True
    if any((command := typed_at(line)) and _is_typed(command) for line in lines):
        return _typed(lines)
    return _script(lines) if passage.fenced else _bare(lines)


def _is_diff(passage: Passage) -> bool:
    return passage.language in ("diff", "patch") or any(
        line.text.startswith(("@@ ", "diff --git ")) for line in passage.lines
    )


def _is_typed(command: str) -> bool:
    """Whether a shell's command follows what looks like a prompt."""
    return _begins_job(command) or _USUAL.match(command) is not None


def typed_at(line: Line) -> str:
    """The command after a prompt; "" if there is none."""
    found = _PROMPT.match(line.text)
    if found is None or re.match(r"[A-Za-z_./~$%]", found["command"]) is None:
        return ""
    return _OH_MY_ZSH.sub("", found["command"], count=1)


def _begins_job(text: str) -> bool:
    """Whether a line begins with a launcher, after assignments and programs such as `nohup`.

    >>> [_begins_job(text) for text in ("A=1 nohup torchrun x.py", "deepspeed", "log deepspeed x")]
    [True, False, False]
    >>> [_begins_job(text) for text in ("flux run -n2 python x.py", "flux is a model")]
    [True, False]
    """
    if _NAMED.search(text) is None:
        return False
    place = 0
    for _ in range(_MOST_ASSIGNED):
        found = _ASSIGNED.match(text, place)
        if found is None:
            break
        place = found.end()
    words = text[place : place + _LONGEST_HEAD].split(maxsplit=12)
    if words and _FOLLOWED.match(text, place):
        return True
    if words and posixpath.basename(words[0]) in _STARTERS:
        words = words[next((at for at, word in enumerate(words) if _is_program(word)), 0) :]
    if len(words) < 2 or not _is_program(words[0]):  # noqa: PLR2004
        return False
    return launches_at(posixpath.basename(words[0]), words[1:]) is not None


def _is_program(word: str) -> bool:
    name = posixpath.basename(word)
    return name in PROGRAMS or name in TRAINERS or re.fullmatch(r"python[\d.]*", name) is not None


def _typed(lines: Sequence[Line]) -> tuple[list[Line], bool]:
    """What was typed at prompts, and whether the last command is complete."""
    typed: list[Line] = []
    goes_on = False
    for line in lines:
        command = "" if goes_on else typed_at(line)
        if command:
            text = command
        elif goes_on or (typed and _is_option(line, typed[-1])):
            if not goes_on:
                typed[-1] = typed[-1]._replace(text=typed[-1].text + " \\")
            text = line.text.removeprefix("> ")
        else:
            continue
        typed.append(line._replace(text=_as_sh(text)))
        goes_on = is_continued(text)
    return typed, not goes_on


def _script(lines: Sequence[Line]) -> tuple[list[Line], bool]:
    """The lines of a script, or the commands and assignments before what they print."""
    texts = [line.text for line in lines if line.text.strip()]
    if texts and (texts[0].startswith("#!") or any(t.startswith("#SBATCH") for t in texts)):
        kept = [line._replace(text=_as_sh(line.text)) for line in lines]
        return kept, not is_continued(texts[-1])
    kept, goes_on = [], False
    shell = True
    for line in lines:
        head = _begins_job(line.text)
        if goes_on:
            text = line.text
        elif kept and _is_option(line, kept[-1]):
            kept[-1] = kept[-1]._replace(text=kept[-1].text + " \\")
            text = line.text
        elif head or _SETS.match(line.text):
            # an assignment below output belongs to another command
            shell = shell or head
            text = line.text
        else:
            shell = False
            continue
        if shell or head or goes_on:
            kept.append(line._replace(text=_as_sh(text)))
        goes_on = is_continued(text)
    return kept, not goes_on


def _bare(lines: Sequence[Line]) -> tuple[list[Line], bool]:
    """Commands on lines of their own, outside a fenced block, with the assignments above them."""
    kept: list[Line] = []
    above: list[Line] = []
    goes_on = False
    for place, given in enumerate(lines):
        line = given._replace(text=_without_marks(given.text))
        if goes_on or (kept and _is_option(line, kept[-1])):
            if not goes_on:
                kept[-1] = kept[-1]._replace(text=kept[-1].text + " \\")
            kept.append(line)
            goes_on = is_continued(line.text)
        elif _begins_job(line.text) and _is_command(line.text) and not _advised(lines, place):
            kept += above
            kept.append(line)
            above, goes_on = [], is_continued(line.text)
        elif line.text.strip() and _SETS.match(line.text):
            above.append(line)
        elif line.text.strip():
            above = []
    return [line._replace(text=_as_sh(line.text)) for line in kept], not goes_on


def _without_marks(text: str) -> str:
    """The command that a line is, or that a sentence says was run, without Markdown's marks.

    >>> _without_marks("`torchrun a.py`"), _without_marks("I ran: torchrun a.py")
    ('torchrun a.py', 'torchrun a.py')
    >>> _without_marks("try `torchrun a.py`"), _without_marks("`torchrun a.py` hangs on 2 GPUs")
    ('try `torchrun a.py`', 'torchrun a.py')
    """
    told = _TOLD.fullmatch(text)
    if told and "`" not in text and _begins_job(told["code"]):
        return told["code"] if says_own(told["before"]) else text
    found = _INLINE.fullmatch(text.strip())
    if found is None or not _begins_job(found["code"]):
        return text
    sentence = f"{found['before']} {found['after']}".strip(" .:*")
    ended = not found["before"].strip() and _ENDED.match(found["after"])
    return found["code"] if not sentence or says_own(sentence) or ended else text


def _advised(lines: Sequence[Line], place: int) -> bool:
    """Whether the sentence above a bare command advises it."""
    above = [line.text for line in lines[max(0, place - 6) : place] if line.text.strip()]
    above = [text for text in above if not _SETS.match(text) and not _begins_job(text)]
    return bool(above) and is_advice(above[-1]) and not says_own(above[-1])


def _is_command(text: str) -> bool:
    """Whether a bare line is a command and no sentence that begins with a launcher's name.

    >>> _is_command("deepspeed train.py --lr 1e-5"), _is_command("deepspeed hangs here")
    (True, False)
    >>> _is_command("docker run --gpus all image deepspeed train.py")
    True
    """
    if _SENTENCE.search(text.rstrip()):
        return False
    words = text.split("#", maxsplit=1)[0].rstrip("\\ ").split()
    plain = 0
    for before, word in zip(("", *words), words, strict=False):
        free = not word.startswith("-") and not before.startswith("-") and "=" not in word
        plain += free and re.search(r"[./\\$:_\d]", word) is None
    starts = re.search(r"(?:^|\s|/)(?:srun|mpirun|mpiexec|python[\d.]*)\s", text) is not None
    named = re.search(r"\.(?:py|sh|ya?ml)\b|\s-m\s+\w|\s--\w", text) is not None
    # the launcher, `launch`, what srun starts, and `docker run image`
    return named and plain <= 2 + starts + 3 * (_FOLLOWED.match(text) is not None)


def _is_option(line: Line, before: Line) -> bool:
    """Whether a line continues a command whose backslash was lost: it has options only."""
    if line.number != before.number + 1 or not re.match(r"\s*--[a-z]", line.text):
        return False
    return _begins_job(before.text) or re.match(r"\s*--[a-z]", before.text) is not None


def is_continued(text: str) -> bool:
    """Whether a backslash at its end joins the next line to it."""
    return text.endswith("\\") and not text.endswith("\\\\")


def _as_sh(text: str) -> str:
    """An assignment of another shell or of a notebook in the words of sh."""
    found = _CSH.match(text) or _OTHER_SHELL.match(text)
    if found is None:
        return text
    value = found["value"].strip("'\"")
    return f"export {found['name']}='{value}'" if "'" not in value else text
