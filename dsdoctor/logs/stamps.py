"""Time stamps of lines, in a format that sorts."""

from __future__ import annotations

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.prefixes import MONTHS

STAMP = lazy(
    r"(?P<d>\d{4}[-/]\d\d[-/]\d\d)[T _](?P<t>\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)"
    r"|\[?[EWIF](?P<m>\d{3,4}) (?P<u>\d\d:\d\d:\d\d\.\d+)"
    rf"|(?P<month>{MONTHS}) (?P<day>[ \d]\d) (?P<v>\d\d:\d\d:\d\d(?:\.\d{{1,6}})?)",
)


def stamp(text: str) -> str:
    """The time stamp of a line, which sorts within a year; "" if there is none.

    >>> stamp("[2024-05-06 07:08:09,123] [INFO]"), stamp("[rank0]:[E506 07:08:10.5 Process")
    ('05-06 07:08:09.123', '05-06 07:08:10.5')
    >>> stamp("May  6 07:08:11 node-a python[7]: step")
    '05-06 07:08:11'
    """
    found = STAMP.search(text[:200]) or (STAMP.search(text[-80:]) if len(text) > 200 else None)  # noqa: PLR2004
    if found is None:
        return ""
    if found["m"]:
        return f"{int(found['m']) // 100:02}-{found['m'][-2:]} {found['u']}"
    if found["month"]:
        month = MONTHS.split("|").index(found["month"]) + 1
        return f"{month:02}-{found['day'].replace(' ', '0')} {found['v']}"
    return f"{found['d'][5:].replace('/', '-')} {found['t'].replace(',', '.')}"
