"""Facts about how the job is to be started: its command, hostfile, environment file and port."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class LaunchCommand(Fact, frozen=True, kw_only=True):
    """The command behind `check --`, taken apart.

    Attributes:
        argv: as given, values that look like secrets masked.
        program: its first word behind assignments, `env`, `nohup` and the like.
        launcher: `deepspeed`, `torchrun`, `accelerate`, `python`, `srun`, `mpirun` or `other`.
        inner: the launcher that `srun` or `mpirun` starts in its turn, None if none.
        script: the training script, or the module behind `-m`; None when none was found.
        script_args: what the script gets.
        env: variables set in front of the command (`VAR=1 …`, `env VAR=1 …`).
        options: the launcher's own options without dashes, `-` as `_`; "" for a switch.
        include: `--include` of the deepspeed launcher.
        exclude: `--exclude` of the deepspeed launcher.
        num_gpus: ranks asked for on each node; None = not said, or not a number.
        num_nodes: nodes asked for; None = not said.
        hostfile: `--hostfile`.
        master_addr: address asked for; None = not said.
        master_port: port asked for; None = not said.
        config_path: the DeepSpeed config that the command names.
        problems: options whose value the launcher refuses.
    """

    argv: tuple[str, ...] = ()
    program: str = ""
    launcher: str = "other"
    inner: str | None = None
    script: str | None = None
    script_args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    options: dict[str, str] = msgspec.field(default_factory=dict)
    include: str = ""
    exclude: str = ""
    num_gpus: int | None = None
    num_nodes: int | None = None
    hostfile: str | None = None
    master_addr: str | None = None
    master_port: int | None = None
    config_path: str | None = None
    problems: tuple[str, ...] = ()


class LaunchParse(Fact, frozen=True, kw_only=True):
    """What the launcher's own parser says to the command line.

    Attributes:
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        accepted: it takes every option.
        error: its words where it does not.
    """

    launcher: str
    accepted: bool
    error: str = ""


class LaunchFiles(Fact, frozen=True, kw_only=True):
    """Whether what the command behind `check --` names is there.

    Attributes:
        program: the program, None where it cannot be told (shell syntax, a command of the shell).
        program_path: where it was found, on PATH or beside the interpreter; None = nowhere.
        script: the training script, None where none is named or its path is not plain.
        script_path: where it was looked for.
        script_exists: None = it could not be told.
        folder: the folder that the command starts in.
    """

    program: str | None = None
    program_path: str | None = None
    script: str | None = None
    script_path: str | None = None
    script_exists: bool | None = None
    folder: str = "."


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a hostfile.

    Attributes:
        host: its name.
        slots: GPUs to use there.
        line: line number, from 1.
    """

    host: str
    slots: int
    line: int


class LineProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A line that its reader refuses.

    Attributes:
        line: line number, from 1; 0 = the file as a whole.
        text: the line.
        reason: what is wrong with it.
    """

    line: int
    text: str
    reason: str


class Hostfile(Fact, frozen=True, kw_only=True):
    """The hostfile, by the grammar of the deepspeed launcher.

    Attributes:
        path: the file, as it was named.
        asked: it was named on a command line; False = the launcher's default place.
        exists: it is there.
        entries: hosts in order.
        problems: what makes the launcher stop.
    """

    path: str
    asked: bool = True
    exists: bool = True
    entries: tuple[HostEntry, ...] = ()
    problems: tuple[LineProblem, ...] = ()

    @property
    def slots(self) -> int:
        """All slots."""
        return sum(entry.slots for entry in self.entries)


class DeepSpeedEnvFile(Fact, frozen=True, kw_only=True):
    """The file of variables that the deepspeed launcher exports to other nodes.

    Attributes:
        path: the file.
        names: variables that it sets.
        problems: lines that crash the launcher or do not do what they look like.
    """

    path: str
    names: tuple[str, ...] = ()
    problems: tuple[LineProblem, ...] = ()


class MasterPort(Fact, frozen=True, kw_only=True):
    """Whether the port on which the ranks meet is free on this node.

    Attributes:
        host: the master address; `` = this node.
        port: the port.
        asked: it was named; False = the launcher's default.
        taken: a socket of this node listens there.
        holder: command and process id of its owner, where that can be seen.
        remote: it is another node, which was asked by a connection.
    """

    host: str = ""
    port: int
    asked: bool = False
    taken: bool = False
    holder: str | None = None
    remote: bool = False
