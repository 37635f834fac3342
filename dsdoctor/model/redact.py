"""Keeps secrets out of snapshots always, and names of people and machines on request."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dsdoctor.model.masking import MASK, lower, mask, mask_tree, mask_value, mask_words, secret_name

__all__ = ["MASK", "mask", "mask_tree", "mask_value", "mask_words", "redact", "secret_name"]

#: Accounts and hosts that identify no one.
_COMMON_USERS = frozenset(
    {
        "admin",
        "azureuser",
        "centos",
        "debian",
        "deepspeed",
        "ec2-user",
        "jovyan",
        "nobody",
        "nvidia",
        "python",
        "root",
        "torch",
        "ubuntu",
        "user",
        "vscode",
    },
)
_COMMON_HOSTS = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})

# What precedes it is checked after the first character, so `re` can search for that character.
_IPV4 = re.compile(r"\d(?<![\w.-]\d)(?<![=~<>]=\d)\d{0,2}\.(?:\d{1,3}\.){2}\d{1,3}(?![\w]|\.\d|-)")
_DOTS = re.compile(r"\.\d{1,3}\.\d{1,3}\.\d")
_IPV6 = re.compile(
    r"[fF23](?<![\w:.].)(?:(?<=[fF])(?:[eE]80|[cCdD][0-9a-fA-F]{2})|(?<=[23])[0-9a-fA-F]{3})"
    r":[0-9a-fA-F:]*[0-9a-fA-F:](?![\w:])",
)
_AWS_NAME = re.compile(r"ip-(?<![\w-]ip-)\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![\w-])")
_HOMES = (
    re.compile(r"/(?:home|Users)[/\\](?P<user>[^/\\\s:;,'\"`]+)"),
    re.compile(r":\\Users[/\\](?<=[A-Za-z]:\\Users.)(?P<user>[^/\\\s:;,'\"`]+)"),
)
#: Four numbers under these names are versions (cuRAND is 10.3.7.77), not addresses.
_VERSION_KEY = re.compile(r"version|wheels|^(?:cudnn|nccl|packages|requires|release|libc)$")


def _walk(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    if isinstance(value, str):
        return change(value, key)
    if isinstance(value, Mapping):
        return {
            _walk_key(name, change, key): _walk(
                item, change, key if _VERSION_KEY.search(key) else str(name)
            )
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(_walk(item, change, key) for item in value)
    return value


def _walk_key(name: Any, change: Callable[[str, str], str], key: str) -> Any:
    """Keys that are words are names of fields or packages; the others are data."""
    if not isinstance(name, str) or re.fullmatch(r"[A-Za-z0-9_-]*[A-Za-z_][A-Za-z0-9_-]*", name):
        return name
    return change(name, key)


def _bounded(words: Iterable[str]) -> re.Pattern[str] | None:
    ordered = sorted({word for word in words if word}, key=lambda word: (-len(word), word))
    if not ordered:
        return None
    choice = "|".join(f"{word}(?<![a-z0-9]{word})" for word in map(re.escape, map(lower, ordered)))
    return re.compile(rf"(?:{choice})(?![a-z0-9])")


def _sub_lower(pattern: re.Pattern[str], by: Callable[[str], str], text: str) -> str:
    """`pattern.sub` for a pattern in lower case and a text in any."""
    kept: list[str] = []
    done = 0
    for found in pattern.finditer(lower(text)):
        begin, end = found.span()
        kept += [text[done:begin], by(text[begin:end])]
        done = end
    return "".join([*kept, text[done:]]) if kept else text


class _Redaction:
    """Names given so far: the same thing gets the same name throughout."""

    def __init__(self, users: Iterable[str], hosts: Iterable[str], paths: Iterable[str]) -> None:
        users = [user for user in users if user.lower() not in _COMMON_USERS]
        hosts = [host for host in hosts if host.lower() not in _COMMON_HOSTS]
        paths = [path.rstrip("/\\") for path in paths]
        paths = [path for path in paths if len(path) > 1]
        self._names: dict[tuple[str, str], str] = {}
        self._count = Counter[str]()
        for kind, words in (("user", users), ("host", hosts), ("path", paths)):
            for word in words:
                self._name(kind, word)
        self._users, self._hosts = _bounded(users), _bounded(hosts)
        ordered = sorted(set(paths), key=lambda path: (-len(path), path))
        choice = "|".join(re.escape(path) for path in ordered)
        self._paths = re.compile(rf"(?:{choice})(?![A-Za-z0-9_])") if ordered else None

    def _name(self, kind: str, word: str) -> str:
        key = (kind, word if kind == "path" else word.lower())
        if key not in self._names:
            self._count[kind] += 1
            prefix = "/" if kind == "path" else ""
            self._names[key] = f"{prefix}{kind}-{self._count[kind]}"
        return self._names[key]

    def _home(self, found: re.Match[str]) -> str:
        user = found["user"]
        if user.lower() in _COMMON_USERS or re.fullmatch(r"user-\d+", user):
            return found[0]
        return found[0][: -len(user)] + self._name("user", user)

    def _address(self, found: re.Match[str]) -> str:
        import ipaddress  # noqa: PLC0415  # only for `--redact`

        try:
            address = ipaddress.ip_address(found[0])
        except ValueError:
            return found[0]
        if address.is_loopback or address.is_unspecified or found[0] == "255.255.255.255":
            return found[0]
        return self._name("ip", found[0])

    def text(self, text: str, key: str = "") -> str:
        """One text; `key` is the name of the field that contains it."""
        if self._paths is not None:
            text = self._paths.sub(lambda found: self._name("path", found[0]), text)
        for home in _HOMES:
            text = home.sub(self._home, text)
        text = _AWS_NAME.sub(lambda found: self._name("host", found[0]), text)
        for kind, pattern in (("host", self._hosts), ("user", self._users)):
            if pattern is not None:
                text = _sub_lower(pattern, functools.partial(self._name, kind), text)
        if not _VERSION_KEY.search(key) and _DOTS.search(text):
            text = _IPV4.sub(self._address, text)
        return _IPV6.sub(self._address, text)


def redact(
    value: Any,
    *,
    users: Iterable[str] = (),
    hosts: Iterable[str] = (),
    paths: Iterable[str] = (),
) -> Any:
    """Replaces users, hosts, paths and addresses in a JSON-like value, the same by the same name.

    Secrets go too. Account names that everybody has (`root`, `ubuntu`) and field names stay.

    >>> redact({"argv": ["/home/ann/x", "ann@gpu1"]}, users=["ann"], hosts=["gpu1"])
    {'argv': ['/home/user-1/x', 'user-1@host-1']}
    """
    return redactor(users=users, hosts=hosts, paths=paths)(value)


def redactor(
    *, users: Iterable[str] = (), hosts: Iterable[str] = (), paths: Iterable[str] = ()
) -> Callable[[Any], Any]:
    """`redact` for several values: what it names in one has the same name in the others."""
    redaction = _Redaction(users, hosts, paths)
    return lambda value: _walk(mask_tree(value), redaction.text)
