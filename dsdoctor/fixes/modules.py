"""Toolkits and compilers of environment modules, found without loading a module.

Lmod and Environment Modules print what loading a module would set, in the language that is asked
for: `modulecmd python load NAME`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from dsdoctor.host import Host, HostError

SECONDS = 60.0
#: Most modules of a kind that are looked at.
LIMIT = 20
_VERSION = r"[-_]?v?\d*(?:[._]\d+)*"
#: A part of a module's name: `CUDA/12.4.0`, `devel/cuda/12.4`, `cuda12.4/toolkit/12.4.1`.
CUDA = re.compile(rf"(?i)cuda(?:[-_]?toolkit)?{_VERSION}")
#: `gcc/12.2.0`, `GCC/12.3.0`, `gnu12/12.3.0` (OpenHPC), `gcc-native/12.3` (Cray).
GCC = re.compile(rf"(?i)(?:gcc(?:-native|-toolset)?|gnu|devtoolset){_VERSION}")
#: Variables that name the root of a toolkit; EasyBuild's is the last.
_ROOTS = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "EBROOTCUDA")


def named(listing: str, kind: re.Pattern[str]) -> list[str]:
    r"""Names of modules of a kind in the output of `module -t avail`, newest first.

    >>> named("/opt/modules:\nCUDA/\ncuda/12.4(default)\ngcc/13\nCUDA/11.8.0\n", CUDA)
    ['cuda/12.4', 'CUDA/11.8.0']
    >>> named("cuda12.4/toolkit/12.4.1\ndevel/cuda/13.0\ncudnn/9.1\npycuda/2024\n", CUDA)
    ['devel/cuda/13.0', 'cuda12.4/toolkit/12.4.1']
    """
    found = [line.strip().split("(")[0] for line in listing.splitlines()]
    names = [
        name
        for name in found
        if re.fullmatch(r"[\w.+/-]*\w", name)
        and not name.startswith(("/", "-"))
        and any(kind.fullmatch(part) for part in name.split("/"))
    ]
    return sorted(dict.fromkeys(names), key=_age)


def _age(name: str) -> list[int]:
    numbers = re.findall(r"\d+", name.rpartition("/")[2])
    return [-int(number) for number in numbers[:4]] or [0]


def assignments(text: str) -> dict[str, str]:
    r"""What a module sets, as the module system prints it for Python.

    >>> assignments("import os\nos.environ[\"A\"] = \"/x\";\nos.environ['B'] = 'it\\'s'\n")
    {'A': '/x', 'B': "it's"}
    """
    found = {}
    rows = re.finditer(r"""^os\.environ\[['"](\w+)['"]\] ?= ?(['"].*['"]);?$""", text, re.MULTILINE)
    for row in rows:
        try:
            found[row[1]] = str(ast.literal_eval(row[2]))
        except (SyntaxError, ValueError):
            continue
    return found


class Modules:
    """The environment modules of a machine; none if it has no module system."""

    def __init__(self, host: Host) -> None:
        self._host = host
        env = host.env
        self._command = env.get("LMOD_CMD") or env.get("MODULES_CMD") or host.which("modulecmd")
        self._listing = self._list()

    def _list(self) -> str:
        if not self._command:
            return ""
        try:
            listed = self._host.run([self._command, "bash", "-t", "avail"], timeout=SECONDS)
        except HostError:
            return ""
        return (listed.stdout + listed.stderr).decode("utf-8", "replace")

    def folders(self, kind: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
        """Modules of a kind with the folders of programs that each adds to PATH."""
        for name, settings in self._settings(kind):
            yield name, self._added(settings)

    def roots(self) -> Iterator[tuple[str, str]]:
        """Modules of CUDA with the roots of the toolkits that they may select."""
        for name, settings in self._settings(CUDA):
            for variable in _ROOTS:
                if root := settings.get(variable):
                    yield name, root.rstrip("/")
            for place in self._added(settings):
                if place.endswith("/bin"):
                    yield name, place.removesuffix("/bin")

    def _added(self, settings: Mapping[str, str]) -> list[str]:
        before = self._host.env.get("PATH", "").split(":")
        after = settings.get("PATH", "").split(":")
        return [place for place in after if place and place not in before]

    def _settings(self, kind: re.Pattern[str]) -> Iterator[tuple[str, dict[str, str]]]:
        for name in named(self._listing, kind)[:LIMIT]:
            try:
                text = self._host.run([str(self._command), "python", "load", name], timeout=SECONDS)
            except HostError:
                continue
            yield name, assignments(text.text)
