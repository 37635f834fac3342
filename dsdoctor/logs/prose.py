"""Lines about errors in general, as in documents, scripts and source code."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy

#: Lines that are not output of a run: a heading of a document or a comment (not the JVM's report of
#: its own crash and nccl-tests' count, which look like comments), a table row that quotes an error,
#: a question of an FAQ, a general question, a command of a script that prints or searches, a
#: comment in quoted source code, a comparison in source code, a sentence that begins in bold and
#: quotes no exception, a step of a diagram.
GENERAL = lazy(
    r"\s{0,3}#{1,6} (?!A fatal error has been|There is insufficient memory|Out of bounds values )\S"
    r"|\s*\| (?!.{0,300}(?:MiB|ERR!|N/A))\S[^|]{0,400} \| [^|]{1,400} \|"
    r"|\s*(?:[-*+>] |\d+\. +)?\*\*(?:问|Q\d{0,3}|Problem|Symptom|Issue|Error|问题|现象|错误)"
    r"s?\s?\d{0,3}\*{0,2}[:：.]"
    r"|\s*(?:[-*+>] |\d+\. +)?\*\*[^*\s][^*]{0,80}\*\*(?!.{0,300}(?:Error|Exception|error)\b)"
    r"|\s*(?://\s|(?:\$ )?(?:printf|echo|e?grep)(?: -\w+)? ['\"\w])"
    r"|\s*(?:-+> ?)?\d+\s{2,}#"
    r"|[+-]?\s*(?:(?:if|elif|and|or|while|return) [^\"']{0,160})?[=!]= *"
    r"[\"'][^\"']{1,40}[\"'][:),\\]*$"
    r"|(?:Do(?:es)?|Is|Are|Can|Could|What|Why|How|When|Should|Would|Will|Has|Have|Did) "
    r"(?!.{0,400}\b(?:I|my|me|we|our)\b)[^?]{0,400}\?\W{0,3}$"
    r"|\s*except \(?[\w., ]{1,200}\)?(?: as \w{1,40})?:"
    # unlike a host `node-x1`, an arrow that ends in a cross has a space beside it
    r"|\s*\w{1,40}(?:\s?-{1,2}(?:[>)]{1,2}|x(?=\s))|\s-{1,2}x)[+-]?\s?\w{1,40}: ",
)
#: A `raise` statement in source code, with its message.
RAISED = lazy(
    r"\braise (?:\w+\.){0,8}[A-Z]\w*(?:\((?:\s*[frbu]{0,2}(?:\"[^\"]*\"?|'[^']*'?))*\)?)?"
)
#: The beginning of a sentence about what may happen.
CONDITIONAL = lazy(
    r"\b[Ii](?:f|n case)\b(?: you(?:r)?| the| it| there| this| an?| users?| any)?[^.:;!?]{0,40}?"
    r"\b(?:encounter|ran? into|come across|face|meet|see|get|hit|experience|report|receive"
    r"|happen|occur|appear|throw|raise|show|crash|fail|die|kill)(?:e?[sd])?(?= |:|：)"
    r"|\b(?:[Ww]hen|[Oo]nce) (?:you|users?) (?:encounter|ran? into|come across|face|meet|see)s?\b"
    r"|\b[Ii]gnore (?:the |any |this |an? )?['`\"]?\w*(?:error|ERROR|Error|warning|Warning)"
    r"|\b[Oo]therwise,? [^.:;!?]{0,60}?\b(?:fail|crash|die|hang|get|see|raise|end)s?\b"
    r"|\b(?:out of memory|OOM|timeout|[Ss]egmentation fault|watchdog) errors\b"
    r"|(?:如果|若|假如|倘若)[^。；;]{0,20}?(?:遇到|出现|碰到|报错|看到|提示|发生)",
)

#: Words with which one begins in English; to compile the pattern takes longer than most lines do.
BEGINNINGS = ("If", "if", "In case", "in case", "hen ", "nce ", "gnore ", "therwise", " errors")


def happened(text: str) -> str:
    """A line without its general statements; the rest may be output of a run.

    >>> happened("If you encounter `CUDA error: out of memory`, use a smaller batch.")
    ''
    >>> happened("RuntimeError: CUDA error. If you see this, set CUDA_LAUNCH_BLOCKING=1")
    'RuntimeError: CUDA error. '
    >>> happened("### Q5: CUDA out of memory")
    ''
    >>> happened('raise RuntimeError("CUDA out of memory") RuntimeError: CUDA out of memory')
    'raise RuntimeError: CUDA out of memory'
    >>> happened("trainer ->> node: CUDA error"), happened("trainer -x node: CUDA error")
    ('', '')
    >>> happened("node-x1: CUDA error")
    'node-x1: CUDA error'
    """
    if GENERAL.match(text):
        return ""
    if "raise " in text:
        text = RAISED.sub("raise", text)
    if text.isascii() and not any(word in text for word in BEGINNINGS):
        return text
    found = CONDITIONAL.search(text)
    return text[: found.start()] if found else text
