"""What launchers and log shippers put before a line, or around it."""

from __future__ import annotations

import contextlib

from dsdoctor.lazy_regex import lazy

MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?"
    rf"|(?:{MONTHS}) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{{1,9}})?"
)
#: Of journald and syslog, after the time: host, program and its process ID.
UNIT = r"[\w.-]{1,64} [\w./@:-]{1,64}\[\d{1,9}\]: "
PREFIXES = lazy(
    r"(?:"
    r"\[(?:rank|default|trainer/)?\s?(?P<a>\d{1,6})\]\s?:\s?|"  # [rank3]:  [default0]:  [3]:
    r" {0,4}(?P<b>\d{1,5}): |"  # srun --label, which pads the number
    # mpirun --tag-output, and with it --timestamp-output (Open MPI 4 iof_base_output.c)
    rf"(?:[A-Z][a-z]{{2}} (?:{MONTHS}) [ \d]\d \d\d:\d\d:\d\d \d{{4}})?"
    r"\[\d+,(?P<c>\d+)\]<std(?:out|err)>:\s?|"
    r"\((?:(?:[^\s()=]{1,80} )?pid=\d+(?:, ip=[\d.]+)?|raylet|autoscaler|gcs_server)"
    r"(?:, ip=[\d.]+)?\) ?|"  # Ray
    r"trainer/\d+ ?|"
    r"ERROR \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{1,80}:\d{1,6}\] |"  # vLLM's logger
    r"\| (?:ERROR \| stderr|INFO \| stdout) \| |"  # FastChat 0.1-0.2 utils.py, LLaVA: all output
    r"\[pod/[\w./-]{1,200}\] |"  # kubectl logs --prefix
    r"[a-zA-Z0-9_.-]{1,64} {1,30}\| |"  # docker compose
    r"<\d{1,3}>(?:1 )?|"  # syslog
    # shippers, Kubernetes, journald; Taskcluster puts the name of what writes into the brackets
    rf"(?:\[(?:[a-z]{{2,20}} )?)?(?:{TIME})\]? (?:std(?:out|err) [FP] |{UNIT})?|"
    # of pdsh, unlike codes of CANN's errors (E, component, number) and rows of `kubectl describe`
    r"(?![\w.]*(?:Error|Exception|Warning|Interrupt|Exit): |E[A-Z1-9]\d{4}: |[A-Z][A-Za-z]+: {5})"
    r"(?:[a-zA-Z][\w.-]{0,62}|\d{1,3}(?:\.\d{1,3}){3})"
    r": (?=\[|Traceback|  File |[A-Za-z_.]+Error|    )"  # pdsh: NODE:
    r")",
)
#: A line with the number of srun's task before torch's rank: one task starts many ranks.
TASK_AND_RANK = lazy(r"^ {0,4}(?P<task>\d{1,5}): (?:.{0,80} )?\[rank(?P<rank>\d{1,6})\]:")
#: fluentd: a time and a tag before the record; fluent-bit: a number and a time within it.
FLUENT = lazy(rf'^(?:{TIME}|\[\d{{1,9}}\]) [\w.*/-]{{1,200}}: (?:\[\d[\d.]{{0,30}}, )?(?=\{{")')
#: Keys of a record that contain the line itself.
LINE_KEYS = ("log", "MESSAGE", "message", "msg", "line", "textPayload")
ANSI = lazy(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")
MOST_PREFIXES = 5


def _record(text: str) -> str | None:
    """The line within a JSON record; None if there is none."""
    import json  # noqa: PLC0415  # for logs that a shipper wrapped

    found: object = None
    with contextlib.suppress(ValueError, RecursionError):
        found, _ = json.JSONDecoder().raw_decode(text)
    if found is None and "=>" in text:  # fluent-bit writes a Ruby hash
        with contextlib.suppress(ValueError, RecursionError):
            found, _ = json.JSONDecoder().raw_decode(text.replace('"=>', '":'))
    if not isinstance(found, dict):
        return None
    for key in LINE_KEYS:
        value = found.get(key)
        if isinstance(value, str):
            return ANSI.sub("", value).rstrip("\r\n")
        if isinstance(value, list) and value and all(isinstance(n, int) for n in value):
            with contextlib.suppress(ValueError):  # journald: bytes that are not UTF-8
                return ANSI.sub("", bytes(value).decode("utf-8", "replace"))
    return None


def strip_prefixes(text: str) -> tuple[str, int | None]:
    """A line without the prefixes of launchers and log shippers, and the rank in them.

    >>> strip_prefixes("node-a: [rank3]: KeyError: 'x'")
    ("KeyError: 'x'", 3)
    """
    if '{"' in text:
        start = 0
        if found := FLUENT.match(text):
            start = found.end()
        if text.startswith("{", start):
            inner = _record(text[start:])
            text = text if inner is None else inner
    rank: int | None = None
    position = 0
    for _ in range(MOST_PREFIXES):
        found = PREFIXES.match(text, position)
        if found is None or found.end() == position:
            break
        for group in ("a", "b", "c"):
            if found[group] is not None:
                rank = int(found[group])
        position = found.end()
    return text[position:], rank
