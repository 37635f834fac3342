"""Passages of a text: what stands in one fenced block or in one stretch of prose, and whose it is.

A launch line or a config says nothing about the reporter's job if somebody else wrote it: in an
answer, in quoted mail, or below "try this". Readers of what tools print need no such care; nobody
writes the output of `nvidia-smi` as advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dsdoctor.paste.lines import Line

#: Words that precede what the reporter did, ...
_OWN = re.compile(
    r"(?i)\b(?:I|we)(?:'m|'ve| am| are| have| was| were)?\s+(?:\w+ly\s+|just\s+|then\s+|also\s+)?"
    r"(?:run(?:ning)?|ran|us(?:e|ed|ing)|start(?:ed|ing)?|launch(?:ed|ing)?|execut(?:e|ed|ing)|call(?:ed)?"
    r"|train(?:ed|ing)?|tried|trying|got|get|set)\b"
    r"|\b(?:my|our)\s+(?:\w+\s+){0,2}(?:command|script|launch|config\w*|setup|settings?|json|yaml|file|hostfile)\b"
    r"|\breproduc\w*|\bwhen (?:I|we|running|launching|executing)\b"
    r"|\b(?:launch|run|training|start|full|following|this|exact|the) (?:command|script)\b"
    r"|我(?:的|用|在|是)|复现|(?:运行|执行|启动|训练)(?:的)?(?:命令|脚本|指令)|(?:命令|脚本|配置文件)(?:如下|为|是)"
    r"|^\W{0,6}(?:command|script|launch|config\w*|run)\b[^.?]{0,40}:?\W{0,4}$"
)
#: ... what others advise, and what is known to work.
_ADVICE = re.compile(
    r"(?i)\b(?:try|trying instead|you (?:can|could|should|may|might|need|must|have to)"
    r"|should (?:be|use|run|set|look|work)|could you|can you|please|instead|suggest\w*|recommend\w*"
    r"|work\s?around|sol(?:ved|ution)|fix(?:ed|es)?|advi[sc]e\w*|e\.g\.|for example|usage|docs?"
    r"|documentation|tutorial|README|expected|official|correct(?:ly)?|alternativ\w*|if you"
    r"|change (?:it|this|that|to)|replace|like this|make sure)\b"
    r"|(?<!not )(?<!n't )(?<!never )\bwork(?:s|ed|ing)?\b(?! (?:on|in|with) (?:a|the|my|our) )"
    r"|试试|尝试|建议|(?:可以|应该|需要|请)(?:用|使用|这样|改|运行|参考)|改成|换成|正常|成功|没有问题"
    r"|\bsuccess\w*|\bruns? (?:fine|ok|well)\b|\bno (?:problem|error|issue)s?\b"
)
#: As GitHub's command line and its pages name who wrote the next lines.
_AUTHOR = re.compile(r"author:\t(?P<name>\S{1,60})\s*$")
_COMMENT = re.compile(
    r"\s*@?(?P<name>[A-Za-z\d][\w-]{0,38})\s+(?:commented|replied|left a comment)\s+(?:on\s+)?"
    r"(?:[A-Z][a-z]{2,8} \d{1,2}\b|(?:\d{1,2}|an?) \w{3,8} ago|last \w{4,6}|yesterday).{0,30}$"
)
_OPENED = re.compile(r"\s*@?(?P<name>[A-Za-z\d][\w-]{0,38})\s+opened (?:this issue|on)\b.{0,80}$")
_ATTRIBUTION = re.compile(r".{0,120}(?:wrote|writes|schrieb|写道)\s*[:：]?\s*$")
_EDITED = re.compile(r"<!--.*?-->")
#: A section of an issue's template; what readers shall try there is what its reporter did.
_HEADING = re.compile(r"\s*(?:#{1,6} |\*\*)(?P<title>\S.{0,80})$")
_REPRODUCED = re.compile(r"(?i)\breproduc|复现|重现")
_TRIED = re.compile(r"(?i)\btry\b")
#: How far above a block the sentence may be that introduces it.
_LEAD = 3
_FARTHEST = 9


class Passage(NamedTuple):
    """A fenced block, or lines of prose.

    Attributes:
        lines: its lines.
        fenced: it is a fenced block.
        closed: the fence is closed; a block at the end of a text that was cut is not.
        lead: the lines of prose that introduce it.
        language: what follows the opening fence (`bash`, `json`).
    """

    lines: tuple[Line, ...]
    fenced: bool
    closed: bool
    lead: str
    language: str = ""


def passages(lines: Sequence[Line]) -> Iterator[Passage]:
    """The passages of a text that are its reporter's own."""
    foreign = _foreign(lines)
    place, prose = 0, list[Line]()
    reproduced = False
    while place < len(lines):
        line = lines[place]
        if not line.fence:
            if heading := _HEADING.match(line.text):
                reproduced = _REPRODUCED.search(heading["title"]) is not None
            if prose and foreign[place] != foreign[place - 1]:
                yield from _own(prose, foreign[place - 1])
                prose = []
            prose.append(line)
            place += 1
            continue
        yield from _own(prose, bool(prose) and foreign[place - 1])
        end = next((at for at in range(place + 1, len(lines)) if lines[at].fence), len(lines))
        lead = lead_of(lines[max(0, place - _FARTHEST) : place])
        advice = is_advice(_TRIED.sub("", lead) if reproduced else lead)
        if not foreign[place] and not advice:
            language = line.text.strip().strip("`~").strip().lower()
            closed = end < len(lines)
            yield Passage(tuple(lines[place + 1 : end]), True, closed, lead, language)
        place, prose = end + 1, []
    yield from _own(prose, bool(prose) and foreign[len(lines) - 1])


def _own(prose: list[Line], foreign: bool) -> Iterator[Passage]:
    if prose and not foreign:
        yield Passage(tuple(prose), fenced=False, closed=True, lead="")


def lead_of(lines: Sequence[Line]) -> str:
    """The sentence above a block: the last lines of prose before it.

    >>> lead_of([Line(1, "It fails."), Line(2, "Try this:"), Line(3, "")])
    'It fails. Try this:'
    """
    found: list[str] = []
    for line in reversed(lines):
        if line.fence:
            break
        text = line.text.strip()
        if text:
            found.insert(0, text)
        elif found:
            break
    return " ".join(found[-_LEAD:])


def is_advice(sentence: str) -> bool:
    """Whether what follows a sentence is advice, or is known to work.

    >>> [is_advice(text) for text in ("You can try:", "This works:", "It does not work:", "I ran:")]
    [True, True, False, False]
    """
    last = _EDITED.sub("", sentence)[-300:]
    if _OWN.search(last):
        return False
    return _ADVICE.search(last) is not None


def says_own(sentence: str) -> bool:
    """Whether a sentence says that its writer did what it shows."""
    return _OWN.search(sentence) is not None and (
        _ADVICE.search(sentence) is None or re.search(r"(?i)\breproduc", sentence) is not None
    )


def _foreign(lines: Sequence[Line]) -> list[bool]:
    """For each line, whether another than the reporter wrote it."""
    own = [
        line
        for line in lines
        if line.text.strip() and not line.quoted and not _ATTRIBUTION.match(line.text)
    ]
    all_quoted = not own
    first, other = "", False
    found = []
    quoted_block: bool | None = None
    for line in lines:
        named = _AUTHOR.match(line.text) or _OPENED.match(line.text) or _COMMENT.match(line.text)
        if named:
            first = first or named["name"]
            other = named["name"] != first
        if line.fence:
            quoted_block = None if quoted_block is not None else line.quoted
        quoted = line.quoted if quoted_block is None else quoted_block
        found.append(other or (quoted and not all_quoted))
    return found
