"""Reads the host compilers and ninja, which build DeepSpeed's ops."""

from __future__ import annotations

import contextlib
import posixpath
import re
import shlex

from dsdoctor.api import Compiler, Compilers, Missing, Patient, Why, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError, exists
from dsdoctor.probes.at_once import at_once
from dsdoctor.probes.command_result import trouble


def parse_compiler(text: str) -> tuple[str | None, str | None]:
    r"""Kind and version of a compiler, from `--version`.

    >>> parse_compiler("c++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) Free Software Foundation")
    ('gcc', '12.2.0')
    >>> parse_compiler("Ubuntu clang version 14.0.0-1ubuntu1.1\nTarget: x86_64")
    ('clang', '14.0.0')
    >>> parse_compiler("hello")
    (None, None)
    """
    clang = re.search(r"\bclang version (\d+(?:\.\d+)*)", text)
    if clang:
        return "clang", clang[1]
    if "Free Software Foundation" in text:
        bare = re.sub(r"\([^)]*\)", "", text.splitlines()[0])
        version = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", bare)
        return "gcc", version[1] if version else None
    other = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", text.splitlines()[0] if text else "")
    return None, other[1] if other else None


def parse_dump_version(text: str) -> str | None:
    r"""Version in the output of `gcc -dumpfullversion -dumpversion`.

    >>> parse_dump_version("12.2.0\n"), parse_dump_version("cc: error")
    ('12.2.0', None)
    """
    found = re.fullmatch(r"\d+(?:\.\d+)*", text.strip())
    return found[0] if found else None


def _words(command: str) -> list[str]:
    """The words of a command line; one with an open quote is split at spaces."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _find(host: Host, program: str) -> str | None:
    if "/" in program:
        return program if exists(host, program) else None
    return host.which(program)


def compiler(host: Host, command: str) -> Compiler:
    """One compiler, called as a build would call it (also a command such as `ccache g++ -m64`)."""
    words = _words(command)
    path = _find(host, words[0]) if words else None
    if path is None:
        return Compiler(command=command)
    argv = [path, *words[1:]]
    try:
        result = host.run([*argv, "--version"], timeout=TOOL_SECONDS)
    except HostError as error:
        return Compiler(command=command, path=path, error=error.missing.detail)
    if (wrong := trouble(result, TOOL_SECONDS)) is not None:
        return Compiler(command=command, path=path, error=wrong)
    kind, version = parse_compiler(result.text)
    if kind == "gcc":
        with contextlib.suppress(HostError):
            dump = host.run([*argv, "-dumpfullversion", "-dumpversion"], timeout=TOOL_SECONDS)
            version = (parse_dump_version(dump.text) if dump.ok else None) or version
    error_words = None if version else "its output contains no version"
    return Compiler(command=command, path=path, kind=kind, version=version, error=error_words)


@probe
def compilers(host: Host, patient: Patient | Missing) -> Compilers:
    """The host compilers and ninja."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "compilers are not looked for on Windows")
    commands = [host.env.get("CXX") or "c++", host.env.get("CC") or "cc"]
    cxx, cc = at_once(lambda command: compiler(host, command), commands)
    beside = None
    if isinstance(patient, Patient) and patient.bin_dir:
        candidate = posixpath.join(patient.bin_dir, "ninja")
        beside = candidate if exists(host, candidate) else None
    ninja = host.which("ninja")
    return Compilers(
        cxx=cxx,
        cc=cc,
        ninja=ninja,
        ninja_in_env=beside,
        ninja_error=None if ninja is None else _ninja_error(host, ninja),
        hipcc=_hipcc(host),
    )


def _hipcc(host: Host) -> str | None:
    """ROCm's compiler in the folder that torch takes (2.13.0 utils/cpp_extension.py)."""
    named = host.env.get("ROCM_HOME") or host.env.get("ROCM_PATH")
    if not named and (on_path := host.which("hipcc")):
        return on_path
    path = posixpath.join(named or "/opt/rocm", "bin", "hipcc")
    return path if exists(host, path) else None


def _ninja_error(host: Host, ninja: str) -> str | None:
    """What fails when torch tries ninja (`verify_ninja_availability`); None = nothing."""
    try:
        result = host.run([ninja, "--version"], timeout=TOOL_SECONDS)
    except HostError:  # a recording without it
        return None
    return trouble(result, TOOL_SECONDS)
