"""Chooses the language of reports, without loading a catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Languages with a catalogue.
LANGUAGES = ("zh",)
#: Variables of a locale, in gettext's order.
VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


def of_reports(given: str | None, env: Mapping[str, str]) -> str:
    """The language of reports: the requested one, or that of the environment.

    >>> of_reports(None, {"LANG": "zh_CN.UTF-8"}), of_reports("en", {"LANG": "zh_CN.UTF-8"})
    ('zh', 'en')
    >>> of_reports(None, {"LANGUAGE": "de:zh", "LANG": "de_DE"})
    'zh'
    """
    if given is not None:
        return given
    locale = next((env[name] for name in VARIABLES if env.get(name)), "C")
    if locale.partition(".")[0] in ("C", "POSIX"):
        return "en"  # gettext ignores LANGUAGE there
    preferred = env.get("LANGUAGE") or locale
    for word in preferred.split(":"):
        language = re.split("[_.@]", word, maxsplit=1)[0].lower()
        if language == "en" or language in LANGUAGES:
            return language
    return "en"
