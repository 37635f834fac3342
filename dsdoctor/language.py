"""Reports in languages other than English, from gettext catalogues.

Checks write English; JSON and every other format for programs stay English. A text of a finding is
looked up in the catalogue of its condition: literally, or as a filled-in template, whose fields
(`{toolkit.root}`) are those in the source code. A text that is not in the catalogue stays English,
and so does one whose fields would mix both languages.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec

from dsdoctor.locales import LANGUAGES
from dsdoctor.model.diagnosis import Cause, Diagnosis
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.report import Report
from dsdoctor.model.smoke import SmokeCause, SmokeReport

PACKAGE = "dsdoctor_checks"
FIELD = re.compile(r"\{[^{}\n]*\}")
_CODE = re.compile(r"`[^`]*`")
_PROSE = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}")
T = TypeVar("T", Finding, Cause, SmokeCause)
_ENTRY = re.compile(r'^(msgctxt|msgid|msgstr)\s+(".*")$|^(".*")$')


def entries(text: str) -> Iterator[tuple[str, str, str]]:
    r"""Context, English and translation of each entry of a `.po` file.

    >>> list(entries('msgctxt "a"\nmsgid "one "\n"two"\nmsgstr "x"\n'))
    [('a', 'one two', 'x')]
    """
    found: dict[str, str] = {}
    field = ""
    for line in [*text.splitlines(), 'msgctxt ""']:
        match = _ENTRY.match(line.strip())
        if match is None:
            continue
        if match[1] in ("msgctxt", "msgid") and "msgstr" in found:
            if found.get("msgid"):
                yield found.get("msgctxt", ""), found["msgid"], found["msgstr"]
            found = {}
        field = match[1] or field
        found[field] = found.get(field, "") + str(ast.literal_eval(match[2] or match[3]))


#: Longest text that is matched with templates, in characters. With three fields that takes time in
#: the cube of the length, and a field may be a name that another account chose.
LONGEST = 1000
#: Characters of a value that may be a few words to translate (`4 GPUs`), and not only a name.
SHORT = 100


@dataclasses.dataclass(frozen=True)
class Catalogue:
    """The translations into one language.

    Attributes:
        texts: condition to English to translation.
    """

    texts: Mapping[str, Mapping[str, str]]

    def translate(self, condition: str, text: str) -> str | None:
        """The translation of a text of a condition; None = there is none.

        A field between backticks is code and is not translated.
        """
        known = self.texts.get(condition, {})
        if text in known:
            return known[text]
        if len(text) > LONGEST:
            return None
        for english, translation in known.items():
            if "{" not in english:
                continue
            match = _pattern(english).fullmatch(text)
            if match is None:
                continue
            parts = FIELD.split(english)
            inside = ["".join(parts[: place + 1]).count("`") % 2 for place in range(len(parts))]
            fields = list(zip(inside, match.groups(), strict=False))
            if any(code and "`" in value for code, value in fields):
                continue  # more than one piece of code, with words between them
            values = [value if code else self._value(condition, value) for code, value in fields]
            if None in values:
                continue
            names = FIELD.findall(english)
            filled = dict(zip(names, values, strict=True))
            words = re.split(f"({FIELD.pattern})", translation)
            return "".join(filled.get(word) or word for word in words)
        return None

    def _value(self, condition: str, value: str) -> str | None:
        """The value of a field; None if it contains words that are not in the catalogue."""
        if len(value) > SHORT and not _PROSE.search(_CODE.sub("`", value)):
            return value
        found = self.translate(condition, value)
        if found is None and not _PROSE.search(_CODE.sub("`", value)):
            return value
        return found


@functools.cache
def _pattern(english: str) -> re.Pattern[str]:
    return re.compile("(.+?)".join(map(re.escape, FIELD.split(english))), re.DOTALL)


@functools.cache
def catalogue(language: str) -> Catalogue | None:
    """The catalogue of a language; None for English, or if it is not installed."""
    spec = find_spec(PACKAGE) if language in LANGUAGES else None
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_locale" / language / "LC_MESSAGES" / f"{PACKAGE}.po"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    texts: dict[str, dict[str, str]] = {}
    for condition, english, translation in entries(text):
        texts.setdefault(condition, {})[english] = translation
    return Catalogue(texts)


def of_report(report: Report, titles: Mapping[str, str], language: str) -> Report:
    """The report in a language: each message is the condition's title and the measured values.

    Args:
        report: in English.
        titles: condition to its title.
        language: as `locales.of_reports` returns it.
    """
    own = catalogue(language)
    if own is None:
        return report
    return msgspec.structs.replace(
        report, findings=[_finding(one, titles, own) for one in report.findings]
    )


def _finding(finding: Finding, titles: Mapping[str, str], own: Catalogue) -> Finding:
    if finding.status in (Status.OK, Status.SKIP):
        return finding
    title = own.translate(finding.condition, titles.get(finding.condition, ""))
    return _translated(finding, own, ("message", "effect", "hint"), title)


def _translated(item: T, own: Catalogue, fields: tuple[str, ...], title: str | None = None) -> T:
    """An item with all of its texts translated that are in the catalogue.

    Args:
        item: a finding or a cause.
        own: the catalogue.
        fields: names of its texts.
        title: precedes the message, which may only state what was measured.
    """
    known = {name: getattr(item, name) for name in fields}
    texts = {name: own.translate(item.condition, text) or text for name, text in known.items()}
    if title:
        texts["message"] = f"{title}：{texts['message']}"
    return msgspec.structs.replace(item, **texts)


def of_diagnosis(diagnosis: Diagnosis, language: str) -> Diagnosis:
    """The diagnosis in a language."""
    own = catalogue(language)
    if own is None:
        return diagnosis
    causes = tuple(_translated(cause, own, ("message", "hint")) for cause in diagnosis.causes)
    return msgspec.structs.replace(diagnosis, causes=causes)


def of_smoke(report: SmokeReport, language: str) -> SmokeReport:
    """The report of a smoke run, with its causes in a language."""
    own = catalogue(language)
    if own is None:
        return report
    fields = ("title", "message", "hint")
    causes = tuple(
        _translated(cause, own, fields, own.translate(cause.condition, cause.title))
        for cause in report.causes
    )
    return msgspec.structs.replace(report, causes=causes)
