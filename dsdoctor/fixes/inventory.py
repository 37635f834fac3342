"""What a package manager has installed: recorded before it changes anything, restored by undo."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from dsdoctor import process
from dsdoctor.host.own_environment import start_of

#: What listing packages may take, in seconds.
LIST_SECONDS = 120.0

#: The index of torch builds that are not on the default one.
INDEX = "https://download.pytorch.org/whl/"
#: A package must not be taken for an option by a package manager, or for a command by a terminal.
_UNSAFE = re.compile(r"^-|[^ -~]")
#: What names a package that is installed from its source (pip 19-26 operations/freeze.py).
_EGG = re.compile(r"#egg=(?P<name>[\w.-]+)")
_EDITABLE = re.compile(r"\((?P<name>[\w.-]+)==[^()]*\)$")
_BUILD = re.compile(r"torch\w*==[\d.]+\+(cu\d+|cpu)$")

Inventory = dict[str, str]
"""Package to what names its version exactly."""


class InventoryError(Exception):
    """The list of packages could not be read; one line."""


def _listing(manager: str, argv: Sequence[str]) -> list[str]:
    program = argv[0]
    return {
        "pip": [program, "-m", "pip", "freeze", "--all"],
        "conda": [program, "list", "--json", *_prefix(argv)],
        "apt": ["dpkg-query", "-W", "-f", "${binary:Package}=${Version} ${db:Status-Status}\\n"],
        "dnf": ["rpm", "-qa", "--qf", "%{NAME}.%{ARCH}=%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\n"],
    }[manager]


def _prefix(argv: Sequence[str]) -> list[str]:
    for flag in ("--prefix", "-p"):
        if flag in argv:
            return ["--prefix", argv[argv.index(flag) + 1]]
    return []


def parse(manager: str, text: str) -> Inventory:
    r"""Packages in a listing.

    >>> parse("pip", "ninja==1.11\ntorch @ file:///x.whl\n-e git+y#egg=z\n")
    {'ninja': 'ninja==1.11', 'torch': 'torch @ file:///x.whl', 'z': '-e git+y#egg=z'}
    >>> parse("pip", "# Editable install with no version control (my-lib==1.0)\n-e /src/lib\n")
    {'my-lib': '-e /src/lib'}
    >>> parse("apt", "gcc-13:amd64=13.2 installed\nold=1 config-files\n")
    {'gcc-13:amd64': 'gcc-13:amd64=13.2'}
    >>> parse("dnf", "gcc.x86_64=0:13.2-1.el9\n")
    {'gcc.x86_64': 'gcc-0:13.2-1.el9.x86_64'}
    >>> parse("conda", '[{"name": "zlib", "version": "1", "build_string": "h_0", "channel": "c"}]')
    {'zlib': 'c::zlib=1=h_0'}
    """
    if manager == "conda":
        rows = json.loads(text)
        found = {str(row["name"]): _conda_spec(row) for row in rows if row.get("channel") != "pypi"}
        return _safe(found)
    found = {}
    above = ""
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith("#"):
            above = words
            continue
        if manager == "pip":
            name = words.split("==")[0].split(" @ ")[0]
            if words.startswith("-e"):
                named = _EGG.search(words) or _EDITABLE.search(above)
                name = named["name"] if named else words
            found[name] = words
        elif manager == "apt":
            spec, _, status = words.partition(" ")
            if status == "installed":
                found[spec.split("=")[0]] = spec
        else:
            name, _, version = words.partition("=")
            stem, dot, arch = name.rpartition(".")
            found[name] = f"{stem}-{version}.{arch}" if dot else f"{name}-{version}"
    return _safe(found)


def _safe(found: Inventory) -> Inventory:
    """The packages that are safe in a command: a package may be called `--log=/etc/x`."""
    return {
        name: spec
        for name, spec in found.items()
        if not any(_UNSAFE.search(word.removeprefix("-e ")) for word in (name, spec))
    }


def _conda_spec(row: Mapping[str, str]) -> str:
    """An exact package spec with its channel, which may not be a configured one."""
    channel = row.get("channel", "")
    head = f"{channel}::" if channel and not channel.startswith("<") else ""
    return f"{head}{row['name']}={row['version']}={row['build_string']}"


def take(manager: str, argv: Sequence[str], env: Mapping[str, str]) -> Inventory:
    """Queries a package manager for what is installed.

    Raises:
        InventoryError: it does not report it.
    """
    listing = _listing(manager, argv)
    try:
        account, own, cwd = start_of(listing, env)
        result = process.run(listing, timeout=LIST_SECONDS, env=own, cwd=cwd, account=account)
    except OSError as error:
        raise InventoryError(f"`{listing[0]}` cannot be started: {error.strerror}") from None
    if not result.ok:
        raise InventoryError(f"`{' '.join(listing)}` says: {result.error_text}")
    try:
        return parse(manager, result.text)
    except (ValueError, KeyError, TypeError):
        raise InventoryError(f"`{' '.join(listing)}` prints no list of packages") from None


def changed_since(before: Inventory, after: Inventory, now: Inventory) -> list[str]:
    """Packages that a fix changed or removed, and that somebody has changed again since.

    >>> changed_since({"a": "a==1"}, {"a": "a==2"}, {"a": "a==3", "b": "b==1"})
    ['a']
    """
    return sorted(
        name
        for name, spec in before.items()
        if after.get(name) != spec and now.get(name) not in (spec, after.get(name))
    )


def restore(
    manager: str, argv: Sequence[str], before: Inventory, after: Inventory, now: Inventory
) -> list[list[str]]:
    """Commands that take back what a fix changed; what was changed since, stays.

    Args:
        manager: the package manager.
        argv: the command by which the fix called it.
        before: the list before the fix.
        after: the list right after it.
        now: the list now.

    >>> after = {"a": "a==2", "b": "b==1"}
    >>> restore("pip", ["/e/python"], {"a": "a==1"}, after, {**after, "mine": "mine==1"})[0]
    ['/e/python', '-m', 'pip', 'uninstall', '--yes', 'b']
    >>> restore("pip", ["/e/python"], {"a": "a==1"}, {"a": "a==2"}, {"a": "a==3"})
    []
    >>> before, after = {"torch": "torch==2.5.1+cu124"}, {"torch": "torch==2.5.1+cu118"}
    >>> restore("pip", ["p"], before, after, after)[0][5:]
    ['--extra-index-url', 'https://download.pytorch.org/whl/cu124', 'torch==2.5.1+cu124']
    """
    new = sorted((set(after) - set(before)) & set(now))
    changed = sorted(
        spec
        for name, spec in before.items()
        if after.get(name) != spec and now.get(name) == after.get(name)
    )
    program = argv[0]
    sudo = ["sudo", "-n"] if program == "sudo" else []
    remove: dict[str, Callable[[list[str]], list[str]]] = {
        "pip": lambda names: [program, "-m", "pip", "uninstall", "--yes", *names],
        "conda": lambda names: [program, "remove", "--yes", "--force", *_prefix(argv), *names],
        "apt": lambda names: [*sudo, "apt-get", "remove", "--yes", *names],
        "dnf": lambda names: [*sudo, "dnf", "remove", "--assumeyes", *names],
    }
    install: dict[str, Callable[[list[str]], list[str]]] = {
        "pip": lambda specs: [
            program, "-m", "pip", "install", "--no-deps",
            *(word for spec in specs for word in spec.split(" ", spec.startswith("-e "))),
        ],
        "conda": lambda specs: [program, "install", "--yes", "--no-deps", *_prefix(argv), *specs],
        "apt": lambda specs: [
            *sudo, "apt-get", "install", "--yes", "--no-install-recommends", "--allow-downgrades",
            *specs,
        ],
        "dnf": lambda specs: [*sudo, "dnf", "downgrade", "--assumeyes", *specs],
    }  # fmt: skip
    if manager == "pip":
        # builds with a local label have their own index
        labels = {found[1] for spec in changed if (found := _BUILD.match(spec))}
        changed = [
            w for label in sorted(labels) for w in ("--extra-index-url", INDEX + label)
        ] + changed
    commands = []
    if new:
        commands.append(remove[manager](new))
    if changed:
        commands.append(install[manager](changed))
    return commands
