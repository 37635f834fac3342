"""The environment of a container in a manifest or Compose file, and what is expanded from it.

Pure. Sources: Kubernetes 1.20 to 1.34 API reference (EnvVar, EnvFromSource) and
third_party/forked/golang/expansion/expand.go; the Compose specification, interpolation, and
compose-go 1.20 to 2.6 template/template.go. Read 2026-11-30.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.probes.container_specs import as_list, compose_variables, mapping
from dsdoctor.probes.shell_variables import OF_PLATFORM


class Stated(NamedTuple):
    """A value that a file states.

    Attributes:
        value: the value.
        line: the line at or below which it stands, from 1.
    """

    value: str
    line: int


#: ConfigMaps by their names.
ConfigMaps = Mapping[str, Mapping[str, Stated]]
#: What Kubernetes expands in commands and values: `$(NAME)`; `$$` is a `$`.
_REFERENCE = lazy(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]{0,250})\)")
#: What Compose fills in, without `$$`.
_INTERPOLATED = lazy(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w{0,250})(?:(?P<sign>:?[-?+])(?P<word>[^{}$]{0,2000}))?\}"
    r"|(?P<plain>[A-Za-z_]\w{0,250}))"
)
_NESTED = 4
#: In place of `$$`, while the rest is filled in.
_DOLLAR = "\0"
#: A line of an env file.
_ROW = lazy(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*)$")
_MOST = 500
#: Characters that are inserted in one text; no command is longer.
_MOST_FILLED = 1 << 17


def config_maps(objects: Iterable[Any]) -> dict[str, dict[str, Stated]]:
    """The texts of ConfigMaps, by name and key."""
    found: dict[str, dict[str, Stated]] = {}
    for one in objects:
        name = mapping(one.get("metadata")).get("name")
        if one.get("kind") != "ConfigMap" or not isinstance(name, str):
            continue
        data = one.get("data")
        below = getattr(data, "below", {})
        found[name] = {
            str(key): Stated(value, below.get(key, 0) + 1)
            for key, value in mapping(data).items()
            if isinstance(value, str)
        }
    return found


def of_pod(values: Mapping[str, Any], maps: ConfigMaps) -> dict[str, Stated]:
    """The variables of a container whose values the file states, in the order of Kubernetes."""
    found: dict[str, Stated] = {}
    for source in as_list(values.get("envFrom"))[:_MOST]:
        name = mapping(mapping(source).get("configMapRef")).get("name")
        before = str(mapping(source).get("prefix") or "")
        for key, stated in maps.get(str(name), {}).items():
            found[before + key] = stated
    for item in as_list(values.get("env"))[:_MOST]:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            continue
        name, value = item["name"], item.get("value")
        reference = mapping(mapping(item.get("valueFrom")).get("configMapKeyRef"))
        other = maps.get(str(reference.get("name")), {}).get(str(reference.get("key")))
        if isinstance(value, str):
            known = {key: one.value for key, one in found.items()}
            below = getattr(item, "below", {})
            text = of_kubernetes(value, known)
            found.pop(name, None)
            if "$(" not in value or "$(" not in text:  # else it is of an object elsewhere
                found[name] = Stated(text, below.get("value", 0) + 1)
        elif other is not None:
            found[name] = other
        else:  # a secret, or a field of the pod
            found.pop(name, None)
    return found


def of_service(
    values: Mapping[str, Any], fill: Callable[[str], str], file: Callable[[str], str]
) -> dict[str, Stated]:
    """The variables of a Compose service; those that only its environment knows are left out.

    Args:
        values: the service.
        fill: fills in the variables of a text, as `interpolated`.
        file: the text of a file beside the Compose file; "" = it cannot be read.
    """
    found: dict[str, Stated] = {}
    below = getattr(values, "below", {})
    files = values.get("env_file")
    for one in files if isinstance(files, list) else [files]:
        name = mapping(one).get("path", one)
        text = file(fill(name)) if isinstance(name, str) else ""
        line = below.get("env_file", 0) + 1
        found |= {key: Stated(value, line) for key, value in env_file(text).items()}
    given = values.get("environment")
    places = getattr(given, "below", {})
    for name, value in list(compose_variables(given).items())[:_MOST]:
        if "$" in fill(value.replace("$$", "")):  # only whoever starts it knows the rest
            found.pop(name, None)
            continue
        found[name] = Stated(fill(value), places.get(name, below.get("environment", 0)) + 1)
    return found


def env_file(text: str) -> dict[str, str]:
    r"""The variables of an `.env` file.

    >>> env_file("# a\nexport A=1\nB='x y' # c\nC=2 # d\n")
    {'A': '1', 'B': 'x y', 'C': '2'}
    """
    found: dict[str, str] = {}
    for row in text.splitlines()[:_MOST]:
        one = _ROW.match(row.strip())
        if one is None:
            continue
        value = one["value"]
        quote = value[:1]
        end = value.find(quote, 1) if quote in ("'", '"') else -1
        found[one["name"]] = value[1:end] if end > 0 else re.split(r"\s#", value)[0].strip()
    return found


def of_kubernetes(text: str, known: Mapping[str, str]) -> str:
    """A text in which Kubernetes has expanded references; those that are not known stay.

    >>> of_kubernetes("--n=$(N) $(date) $$(N) $N", {"N": "8"})
    '--n=8 $(date) $(N) $N'
    """
    if "$" not in text:
        return text
    left = _MOST_FILLED

    def value(found: re.Match[str]) -> str:
        nonlocal left
        if found["name"] is None:
            return "$"
        own = known.get(found["name"])
        # of several lines, those below would have other numbers
        if own is None or "\n" in own or len(own) > left:
            return found[0]
        left -= len(own)
        return own

    return _REFERENCE.sub(value, text)


def interpolated(text: str, known: Mapping[str, str]) -> str:
    """A text in which Compose has filled in variables; those that are not known stay.

    >>> interpolated("${N:-4} ${M-${N:-2}} $K ${K:+x} $$K ${E:-1}", {"K": "k", "E": ""})
    '4 2 k x $K 1'
    >>> interpolated("${WORLD_SIZE:-2} ${U} ${U:?must be set}", {})
    '${WORLD_SIZE:-2} ${U} ${U:?must be set}'
    """
    if "$" not in text:
        return text
    left = _MOST_FILLED

    def value(found: re.Match[str]) -> str:
        nonlocal left
        name, sign, word = found["braced"] or found["plain"], found["sign"] or "", found["word"]
        own = known.get(name)
        if own is not None and ("\n" in own or len(own) > left):
            return found[0]
        left -= len(own or "")
        is_set = own is not None and (own != "" or ":" not in sign)
        if sign.endswith("+"):
            return (word or "") if is_set else ""
        if is_set:
            return own or ""
        return (word or "") if sign.endswith("-") and not OF_PLATFORM.fullmatch(name) else found[0]

    text = text.replace("$$", _DOLLAR)
    for _ in range(_NESTED):
        before, text = text, _INTERPOLATED.sub(value, text)
        if text == before:
            break
    return text.replace(_DOLLAR, "$")
