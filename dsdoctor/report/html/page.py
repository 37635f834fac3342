"""One HTML file from a template: escaping, the style sheet, the Content-Security-Policy."""

from __future__ import annotations

import base64
import datetime as dt
import functools
import hashlib
import importlib.util
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsdoctor import extras
from dsdoctor.errors import UsageError
from dsdoctor.report.durations import duration
from dsdoctor.version import __version__

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent / "templates"
#: Categories of characters that have no glyph: controls, directions of writing, surrogates,
#: private and unassigned code points, separators of lines. The first two hide or reorder text.
#: Rows of a long table that are shown at first: laying out thousands takes seconds.
SHOWN = 100
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_KEPT = "\n\t"
_CODE = re.compile(r"`([^`\n]+)`")
KIB = 1024


def require() -> None:
    """Fails early where pages cannot be made.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    if importlib.util.find_spec("jinja2") is None:
        raise UsageError(
            f"an HTML report needs the package `jinja2`; run `{extras.command_for('html')}`"
        )


def visible(text: str) -> str:
    r"""Text in which every character that has no glyph is replaced.

    >>> visible("gpu\u202e71\x1b[2J") == "gpu\ufffd71\ufffd[2J"
    True
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if character not in _KEPT and unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """Parts of a sentence; True marks what is between backticks.

    >>> list(prose("run `nvcc -V` first"))
    [(False, 'run '), (True, 'nvcc -V'), (False, ' first')]
    """
    for number, part in enumerate(_CODE.split(text)):
        if part:
            yield bool(number % 2), part


def gib(size: float) -> str:
    """A size in words.

    >>> gib(3 * 2**30), gib(5 * 2**20)
    ('3.0 GiB', '5.0 MiB')
    """
    value, unit = size / KIB, "KiB"
    for larger in ("MiB", "GiB", "TiB"):
        if abs(value) < KIB:
            break
        value, unit = value / KIB, larger
    return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.1f} {unit}"  # noqa: PLR2004


def moment(text: str) -> str:
    """A point in time of a record, for a reader.

    >>> moment("2026-11-22T06:10:00+00:00"), moment("2026-11-22T06:10:00.5Z"), moment("?")
    ('2026-11-22 06:10:00 UTC', '2026-11-22 06:10:00 UTC', '?')
    """
    try:
        found = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text
    zone = " UTC" if found.utcoffset() == dt.timedelta(0) else found.strftime("%z")
    return f"{found:%Y-%m-%d %H:%M:%S}{zone}"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2  # noqa: PLC0415  # an extra, and only for pages

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # the one place that every value passes on its way into a page
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {"prose": prose, "gib": gib, "moment": moment, "duration": duration}
    return environment


@functools.cache
def _asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def render(template: str, *, title: str, script: str | None = None, **context: Any) -> str:
    """A page.

    Args:
        template: file name in `templates/`.
        title: title of the window.
        script: file name of a script in addition to `copy.js`, which all pages run; None = none.
        context: what the template shows.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    require()
    style = _asset("style.css")
    code = _asset("copy.js") + ("" if script is None else _asset(script))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; base-uri 'none'; form-action 'none'; "
        f"script-src {_hash(code)}"
    )
    found = _environment().get_template(template)
    return found.render(
        title=title,
        style=style,
        script=code,
        policy=policy,
        version=__version__,
        shown=SHOWN,
        **context,
    )
