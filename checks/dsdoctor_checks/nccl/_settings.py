"""Which settings NCCL would read, and how it matches interface names.

Source: NCCL 2.30.7 src/misc/param.cc (files), src/misc/utils.cc and src/misc/socket.cc (matching),
read 2026-11-21.
"""

from __future__ import annotations

import msgspec

from dsdoctor.api import Environment, LaunchCommand, Missing, NcclFiles, whole


class Setting(msgspec.Struct, frozen=True):
    """A variable that NCCL would see.

    Attributes:
        name: the variable.
        value: its value.
        path: file that sets it; "" = the environment or the command itself.
        line: line of that file, 0 = none.
        of_command: the command or the script that starts it sets the variable.
    """

    name: str
    value: str
    path: str = ""
    line: int = 0
    of_command: bool = False

    @property
    def where(self) -> str:
        """The place, for a message.

        >>> Setting("NCCL_DEBUG", "INFO", "/etc/nccl.conf", 3).where
        ' in line 3 of `/etc/nccl.conf`'
        """
        return f" in line {self.line} of `{self.path}`" if self.path else ""

    @property
    def shown(self) -> str:
        """The setting and its place, for a message."""
        if self.path:
            return f"`{self.name}={self.value}` in line {self.line} of `{self.path}`"
        return f"`{self.name}={self.value}`"

    @property
    def of_environment(self) -> bool:
        """Whether unsetting it in the shell removes it."""
        return not self.path and not self.of_command

    @property
    def remedy(self) -> str:
        """How to remove it, for a hint."""
        if self.path:
            return f"remove line {self.line} from `{self.path}`"
        if self.of_command:
            return f"remove `{self.name}={self.value}` from the command"
        return f"run `unset {self.name}`"


def settings(
    env: Environment | Missing,
    files: NcclFiles | Missing,
    command: LaunchCommand | Missing,
) -> dict[str, Setting]:
    """Every variable that begins with NCCL_ and is in effect.

    The command's own assignments override the environment, which overrides the user's file, which
    overrides /etc/nccl.conf.
    """
    found: dict[str, Setting] = {}
    if isinstance(files, NcclFiles):
        for file in reversed(files.files):
            taken: set[str] = set()
            for line in file.settings:
                if line.name not in taken:  # a later line does not overwrite an earlier one
                    taken.add(line.name)
                    found[line.name] = Setting(line.name, line.value, file.path, line.line)
    if isinstance(env, Environment):
        found |= {name: Setting(name, value) for name, value in env.variables.items()}
    if isinstance(command, LaunchCommand):
        given = command.env.items()
        found |= {name: Setting(name, value, of_command=True) for name, value in given}
    return {name: found[name] for name in sorted(found) if name.startswith("NCCL_")}


class Pattern(msgspec.Struct, frozen=True):
    """A list of names, as in NCCL_SOCKET_IFNAME and NCCL_IB_HCA.

    Attributes:
        names: prefixes, or whole names if `exact`, each with a port or None.
        exclude: all but these (`^`).
        exact: names must be equal (`=`).
    """

    names: tuple[tuple[str, int | None], ...]
    exclude: bool = False
    exact: bool = False

    def matches(self, name: str, port: int | None = None) -> bool:
        """Whether an interface is chosen."""
        hit = any(
            (name == want if self.exact else name.startswith(want))
            and (wanted is None or port is None or wanted == port)
            for want, wanted in self.names
        )
        return hit != self.exclude


def parse_pattern(text: str) -> Pattern:
    """Parses a list of names.

    >>> parse_pattern("^docker,lo").matches("eth0"), parse_pattern("eth").matches("ib0")
    (True, False)
    >>> parse_pattern("=mlx5_1:1,mlx5_2").names
    (('mlx5_1', 1), ('mlx5_2', None))
    """
    exclude = text.startswith("^")
    rest = text[1:] if exclude else text
    exact = rest.startswith("=")
    names: list[tuple[str, int | None]] = []
    for item in (rest[1:] if exact else rest).split(","):
        name, colon, port = item.partition(":")
        if name:
            names.append((name, whole(port) if colon else None))
    return Pattern(tuple(names), exclude=exclude, exact=exact)
