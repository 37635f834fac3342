"""Documents that quote errors: guides, FAQs, change logs, plans.

Above a certain share of headings and sentences a text is not the output of a run, and a line in it
that reads like a failure is a quotation, unless output of a run is next to it. A bug report has
headings and sentences too, but its author writes in the first person or filled in an issue form.
A short text without any output is a document too if it explains: what an error means, what usually
causes it, how to solve it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.echoes import is_echo
from dsdoctor.logs.errors import EXCEPTION
from dsdoctor.logs.hits import Scan
from dsdoctor.logs.marks import TRAINED
from dsdoctor.logs.prose import happened

#: Fewest headings and sentences of a document ...
HEADINGS, SENTENCES = 4, 6
#: ... and of one whose quotations never count.
MANY_HEADINGS, MANY_SENTENCES = 10, 60
#: Fewest headings of an issue form in a bug report.
FORM = 2
#: Fewest sentences of a document for each word in the first person.
PER_FIRST_PERSON = 4
#: Fewest different words of an explanation, or definitions in a list, of a document that contains
#: neither output nor the first person ...
EXPLAINS = 3
#: ... and fewest headings and sentences of one; that many sentences also count as one such word.
FEW_HEADINGS, FEW_SENTENCES = 3, 4
#: Lines around a quotation that are searched for output of a run.
REACH = 6
#: Blanks before a line of running text, at most: the help of a command is indented further.
INDENT = 12
#: Fewest words of a sentence, fewest of them separated by blanks (a list of folders contains words,
#: but no blanks), and the share of them in lower case.
WORDS, APART, SMALL = 7, 5, 0.6
#: Fewest characters of a sentence in Chinese, and of one in Japanese or Korean; fewest words of one
#: in Cyrillic letters.
HAN, KANA, CYRILLIC = 15, 25, 6
#: Most lines of a report by a person; a longer text with sentences is what models or users said.
LONGEST_REPORT = 1500
#: Most words of a heading without markup, and the share of them that begin with a capital.
MOST_WORDS, CAPITAL = 12, 0.6

#: A row below a heading is about as long as it; reports and Open MPI (1.3-5.0
#: opal/util/show_help.c: 74 dashes) are divided by longer ones.
_HEADING = lazy(r"\s{0,3}#{1,6} \S|(?:={4,72}|-{4,72}|~{4,72})$")
#: A line in bold type, which older forms for reports have instead of a heading.
_BOLD = lazy(r"\s{0,3}\*\*[^*]{3,60}\*\*:?\s*$")
#: A heading without markup, as a browser leaves it: a short line that is not a sentence.
_PLAIN = lazy(r"[A-Z0-9][^|=<>{}\\]{3,90}[^\s.,;:!|=)\]}]$")
_FENCE = lazy(r"\s{0,6}(?:```|~~~)")
_WORD = lazy(r"[A-Za-z][a-z']*")
_HAN = lazy(r"[\u4e00-\u9fff]")
_KANA = lazy(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_CYRILLIC = lazy(r"[\u0400-\u04ff]{2,}")
_ENDS = lazy(r"[a-z]{2,}[.,:;?!)`*]{0,3}(?: |$)")
_OUTPUT = lazy(
    r'^\s*File "|\d\d:\d\d:\d\d|^\[?(?:rank\d|\d+)[\]:]|Traceback \(|it/s\]|, line \d+, in '
    r"|\.py:\d{1,6}: \w*Warning: "
    r"|\b(?<!=)(?:INFO|WARN(?:ING)?|ERROR|DEBUG)[ :\]]|^\s*\^+$"
)
_FIRST_PERSON = lazy(
    r"(?<!How do )(?<!how do )(?<!How can )(?<!how can )\b(?:I|I'm|I've|[Mm]y|me|am|mine)\b"
    r"|我(?!们)|请问|求助"
    r"|私(?!たち)|エラーが(?:出|発生し)(?:ま|て)|困って|わかりません|分かりません|できません"
    r"|(?i:\b(?:я|меня|мне|мой|моя|моё|мою|у нас)\b)|저는|제가|안 ?됩니다"
)
#: How people ask for help, or answer someone who did.
_ASKS = lazy(
    r"\b(?:[Aa]ny(?:one|body)|[Tt]hanks|[Tt]hank you|[Hh]elp me"
    r"|[Aa]ny (?:idea|help|suggestion|advice|pointer)s?|[Ss]ame (?:issue|problem|error)"
    r"|[Pp]lease (?:help|advise|try|provide|share))\b|(?<![\w.])@\w"
    r"|求解|求指导|怎么(?:办|解决|回事)|吗[?？]|谢谢|大佬|麻烦"
    r"|教えて|どうすれば|(?:でしょう|です|ます)か(?:[?？。]|$)|お願い(?:し|いた)|ありがとう"
    r"|(?i:подскажите|помогите|спасибо|кто-нибудь|в ч[её]м |что делать"
    r"|как (?:быть|исправить|решить))"
    r"|알려 ?주|도와 ?주|감사합니다|부탁|[까나가]요(?:[?？.]|$)"
)
#: Words of a text that explains an error to any reader.
_EXPLAINS = lazy(
    r"\b(?:common(?:ly)?|typically|usually|often|generally|most likely|occurs? when|happens? when"
    r"|indicates?|means?|stands for|symptoms?|root cause|(?:possible|likely) causes?"
    r"|troubleshoot(?:ing)?|solutions?|work-?arounds?|recommended|best practices?|overview"
    r"|such as|for example|(?:this|the) (?:article|guide|page|post|section|document|blog)"
    r"|frequently|let's|explanation|gotchas?|pitfalls?|how it works"
    r"|why (?:this|it) (?:matters|happens)|how to (?:fix|solve|resolve))\b"
    r"|本文|常见|通常|一般|解决(?:方案|方法|办法)|原因|分析|总结|介绍|概述|建议|预防|现象|排查"
    r"|本記事|この記事|よくある|典型的|解決|対策|対処|例えば|意味(?:する|します)|を解説|この例では"
    r"|обычно|часто|на самом деле|возникает|означает|причин\w*|решени\w*|исправить|например"
    r"|원인|해결|일반적|의미합니다|예를 들어|방법",
    re.IGNORECASE,
)
#: An exception: words of its own text do not count as an explanation.
_SAID = lazy(r"[\W\d]{0,20}(?:raise |(?:\w+\.){0,8}\w*(?:Error|Exception|Warning)\b)")
#: An item of a list that is an exception with its text.
_LISTED = lazy(
    r"\s*(?:[-*•]|\d{1,2}[.)])\s+`{0,2}(?P<what>(?:\w+\.){0,8}\w*(?:Error|Exception): .+)"
)
#: An item of a list that defines a word in a sentence; not a weight, as transformers lists them
#: (`- lm_head.weight: found shape ...`).
_DEFINES = lazy(
    r"\s*(?:[-*•+]|\d{1,2}[.)])\s+(?!\w{1,60}(?:\.\w{1,60}){1,12}:)[`*]{0,3}[A-Za-z][^:]{1,120}:"
    r"[`*]{0,3}\s+(?P<what>.+)"
)
#: Words for a failure, in a sentence about one.
_FAILURE = lazy(
    r"(?i)\b(?:errors?|exceptions?|fail(?:s|ed|ure)?|crash(?:es|ed)?|hangs?|stuck|killed|dies|died|oom"
    r"|out of memory|bug|not work)\b|报错|错误|失败|崩溃|卡住|卡死|异常|不足"
)
#: What somebody says of a run that failed, and what takes it back.
_CLAIM = lazy(
    r"(?i)\b(?:a|an|any|encountered|following|get|gets|getting|giving|got|gives|had|has|have|see|the"
    r"|these|this|those|throws|with) (?:[\w'`*-]{1,40} ){0,3}?"
    r"(?:errors?|exceptions?|\w{3,40}Error)\b"
    r"|\b(?:fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|hang(?:s|ing)?|hung|stuck|freezes|killed|dies"
    r"|died)\b|\b(?:unable|not able) to \w"
    r"|\b(?:ca|can|could|does|did|do|is|was|will|wo|would)(?:not|n't| not) (?:[\w-]{1,30} ){0,2}?"
    r"(?:work|run|start|train|load|import|install|initiali[sz]ed?|build|compile|connect|launch)\b"
    r"|\bnon-zero exit (?:code|status)\b"
    r"|\bexit(?:ed|s)?(?: with)? (?:code|status)[ :=]{1,3}(?!0\b)-?\d"
    r"|\b(?:loss|grad\w{0,10}|reward)(?:es|s)? (?:[a-z]{1,12} ){0,2}?(?:is|are|was|were|becomes?"
    r"|became|turns|turned|changes|changed|goes|went) (?:[a-z]{1,12} ){0,2}?(?:nan|inf)\b"
    r"|\b(?:CrashLoopBackOff|ErrImagePull|ImagePullBackOff|OOMKilled)\b"
    r"|报错|出错|失败|崩溃|卡住|卡死|跑不[了起通]|(?:无法|不能)(?:运行|启动|训练|加载|使用|安装)"
)
_DENIED = lazy(
    r"(?i)\b(?:no|not an?|never|without(?: any)?|zero|isn't an) (?:[\w-]{1,30} ){0,2}?"
    r"(?:errors?|exceptions?|fail\w*|crash\w*|hang\w*)|(?:没有|不)(?:报错|出错|失败)"
)
#: The marks of a heading, and how a title ends that only names what it is about.
_MARKS = lazy(r"\s{0,3}#{1,6} +")
_NAMES_ERROR = lazy(r"(?i)(?<!about )(?<!of )(?<!on )\berrors?[\s.!:]*$")
#: The tag of a report in its title.
_TAGGED = lazy(r"(?i)\[(?:bug|issue|error|help|question)s?\]")
#: Lines above the output, and below it, in which people say what happened.
_ABOVE, _BELOW = 8, 3
_FORM = lazy(
    r"describe the bug|bug description|steps to reproduce|to reproduce|reproduction"
    r"|(?:expected|current|actual) behaviou?r|system info|your (?:current )?environment"
    r"|additional context|问题描述|复现|期望行为",
    re.IGNORECASE,
)


class Shape(NamedTuple):
    """Counts of what a text contains, outside of fenced blocks.

    Attributes:
        headings: headings of Markdown and reStructuredText.
        sentences: lines of running text.
        first_person: words in the first person.
        output: lines that a run prints.
        form: headings of an issue form.
        fenced: lines that a run prints, within fenced blocks.
        asks: words that ask for help.
        explains: different words of an explanation.
        defines: list items that define a word.
    """

    headings: int
    sentences: int
    first_person: int
    output: int
    form: int
    fenced: int = 0
    asks: int = 0
    explains: int = 0
    defines: int = 0


def _is_sentence(line: str) -> bool:
    if line.startswith(" " * INDENT):
        return False
    if not line.isascii() and (
        len(_HAN.findall(line)) >= HAN
        or len(_KANA.findall(line)) >= KANA
        or len(_CYRILLIC.findall(line)) >= CYRILLIC
    ):
        return True
    words = _WORD.findall(line)
    return (
        len(words) >= WORDS
        and len(line.split()) >= APART
        and sum(word.islower() for word in words) >= SMALL * len(words)
        and bool(_ENDS.search(line))
    )


def _is_plain_heading(line: str) -> bool:
    words = line.split()
    capital = sum(word[:1].isupper() or word[:1].isdigit() for word in words)
    return 2 <= len(words) <= MOST_WORDS and capital >= CAPITAL * len(words)  # noqa: PLR2004


def shape_of(lines: Sequence[str]) -> Shape:
    """Counts what a text contains.

    >>> shape_of(["# Errors", "", "This page says what an error asks of the reader."])[:5]
    (1, 1, 0, 0, 0)
    """
    headings = sentences = first_person = output = inside = asks = defines = 0
    form: set[str] = set()
    explains: set[str] = set()
    fenced = False
    for place, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if not line.strip():
            continue
        if fenced:
            inside += _OUTPUT.search(line) is not None
            continue
        if _OUTPUT.search(line):
            output += 1
            continue
        first_person += len(_FIRST_PERSON.findall(line))
        asks += len(_ASKS.findall(line))
        if not _SAID.match(line):
            explains.update(word.lower() for word in _EXPLAINS.findall(line))
        item = _DEFINES.match(line)
        defines += item is not None and _is_sentence(item["what"])
        if _HEADING.match(line):
            headings += 1
            form.update(name.lower() for name in _FORM.findall(line))
        elif _BOLD.match(line):
            form.update(name.lower() for name in _FORM.findall(line))
        elif _is_sentence(line):
            sentences += 1
        elif _PLAIN.match(line) and _is_plain_heading(line):
            alone = not "".join([*lines[max(0, place - 1) : place], *lines[place + 1 : place + 2]])
            headings += alone
    return Shape(
        headings, sentences, first_person, output, len(form), inside, asks, len(explains), defines
    )


def is_document(shape: Shape) -> bool:
    """Whether a text is a document, not a report of a failure."""
    if shape.form >= FORM:
        return False
    written = shape.sentences >= FEW_SENTENCES
    if not (shape.first_person or shape.asks or shape.output or shape.fenced) and (
        max(shape.explains + written, shape.defines) >= EXPLAINS
        or (written and shape.headings >= FEW_HEADINGS)
    ):
        return True
    return (
        shape.headings >= HEADINGS
        and shape.sentences >= max(SENTENCES, PER_FIRST_PERSON * shape.first_person)
        and shape.output * 4 <= shape.sentences
    )


def take_out_quotations(scan: Scan, data: bytes) -> None:
    """Removes what a document only quotes, and marks the scan as one of a document.

    Args:
        scan: the result for the log; it is changed.
        data: the whole text.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    listed = {number for number in range(1, len(lines) + 1) if _is_listed(number, lines)}
    scan.hits = [hit for hit in scan.hits if hit.line not in listed]
    scan.errors = [error for error in scan.errors if error.line not in listed]
    scan.tail = [row for row in scan.tail if row[0] not in listed]
    shape = shape_of(lines)
    if not is_document(shape):
        _leave_what_is_only_told(scan, lines)
        scan.told = (
            TRAINED not in scan.marks
            and len(lines) <= LONGEST_REPORT
            and (_claims(shape, lines) or (scan.step is None and _only_tells(shape, lines)))
        )
        return
    scan.document = True
    scan.marks = {}
    if shape.headings >= MANY_HEADINGS and shape.sentences >= MANY_SENTENCES:
        scan.hits, scan.errors = [], []
    scan.hits = [hit for hit in scan.hits if _stands_in_output(hit.line, lines)]
    scan.errors = [error for error in scan.errors if _stands_in_output(error.line, lines)]


def _fenced(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines in fenced blocks."""
    found: set[int] = set()
    inside = False
    for number, line in enumerate(lines, 1):
        if _FENCE.match(line):
            inside = not inside
        elif inside:
            found.add(number)
    return found


def _leave_what_is_only_told(scan: Scan, lines: Sequence[str]) -> None:
    """Removes failures that sentences mention, if a quoted exception shows the one at hand.

    Who reports an error often tells of others that they had before, or that they avoid.
    """
    fenced = _fenced(lines)
    if not any(e.line in fenced and not is_echo(e) for e in scan.errors):
        return
    printed = {error.line for error in scan.errors}
    scan.hits = [
        hit
        for hit in scan.hits
        if hit.line in fenced
        or hit.line in printed
        or EXCEPTION.match(lines[hit.line - 1].strip())
        or not _is_sentence(lines[hit.line - 1])
    ]


def _only_tells(shape: Shape, lines: Sequence[str]) -> bool:
    """Whether somebody writes about a failure of theirs, without a line that a run printed."""
    written = sum(bool(line.strip()) for line in lines)
    return (
        not (shape.output or shape.fenced or any(map(_SAID.match, lines)))
        and bool(shape.first_person or shape.asks)
        and shape.sentences * 3 >= written
        and any(_FAILURE.search(line) for line in lines)
    )


def _claims(shape: Shape, lines: Sequence[str]) -> bool:
    """Whether the author of a report says above or below the output that the run failed."""
    above: list[str] = []
    below: list[str] = []
    fenced = shown = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
            below = []
        elif fenced or _OUTPUT.search(line):
            shown, below = shown or not fenced, []
        elif line.strip():
            below.append(line)
            if not shown and len(above) < _ABOVE:
                above.append(line)
    title = _MARKS.sub("", above[0]) if above else ""
    by_a_person = shape.first_person or shape.asks or shape.form or any(map(_FENCE.match, lines))
    if not (by_a_person or _TAGGED.match(title) or _HAN.search(title)):
        return False
    asked = below[-_BELOW:] if any(map(_ASKS.search, below[-_BELOW:])) else []
    said = [title, *(line for line in [*above[1:], *asked] if _is_sentence(line))]
    return _NAMES_ERROR.search(title) is not None or any(
        _CLAIM.search(_DENIED.sub("", happened(line))) for line in said
    )


def _is_listed(number: int, lines: Sequence[str]) -> bool:
    """Whether an exception is an item of a list of several, such as related or known errors."""
    found = _LISTED.match(lines[number - 1])
    if found is None:
        return False
    around = (lines[at] for at in (number - 2, number) if 0 <= at < len(lines))
    others = (_LISTED.match(line) for line in around)
    return any(other is not None and other["what"] != found["what"] for other in others)


def _stands_in_output(number: int, lines: Sequence[str]) -> bool:
    around = lines[max(0, number - 1 - REACH) : number + REACH]
    return any(_OUTPUT.search(line) for line in around)
