"""Facts about how the job will be started: its command, hostfile, environment file and port."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.units import whole

_NOTHING: Mapping[str, str] = {}
_OFF = frozenset({"false", "no", "0"})
#: Options of launchers and scripts that keep a job on the CPU (accelerate, transformers, timm).
ON_CPU = frozenset({"cpu", "use_cpu", "no_cuda", "force_cpu"})


class LaunchCommand(Fact, frozen=True, kw_only=True):
    """The command after `check --`, parsed.

    Attributes:
        argv: the command as given, secrets masked.
        program: the first word after assignments, `env`, `nohup` and similar prefixes.
        launcher: `deepspeed`, `torchrun`, `accelerate`, `colossalai`, `composer`, `python`, `srun`,
            `mpirun`, `jsrun`, `flux`, `aprun`, `horovodrun` or `other`.
        inner: the launcher that `srun`, `mpirun` or their like starts; None if none.
        outer: options of `srun` and its like, as in `options`; short ones by their letter.
        script: the training script, or the module after `-m`; None if none was found.
        script_args: arguments of the script.
        env: variables set in front of the command (`VAR=1 …`, `env VAR=1 …`), or by options of the
            program that starts it (`mpirun -x VAR=1`, `srun --export=ALL,VAR=1`). Of a container,
            those of NCCL and torch (`docker run -e NCCL_DEBUG=INFO`).
        options: the launcher's own options without dashes, `-` as `_`; "" for a switch. Also
            `gpu_ids`, and `cpu` for `use_cpu`, of accelerate's configuration.
        include: `--include` of the deepspeed launcher.
        exclude: `--exclude` of the deepspeed launcher.
        num_gpus: ranks requested on each node; None = not given, or not a number.
        num_nodes: nodes requested; None = not given.
        hostfile: `--hostfile`.
        mpi_slots: slots of each host that `mpirun -H` or its hostfile lists.
        master_addr: rendezvous address; None = not given.
        master_port: rendezvous port; None = not given.
        config_path: the DeepSpeed config in the command.
        problems: options whose value the launcher rejects.
    """

    argv: tuple[str, ...] = ()
    program: str = ""
    launcher: str = "other"
    inner: str | None = None
    outer: dict[str, str] = msgspec.field(default_factory=dict)
    script: str | None = None
    script_args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    options: dict[str, str] = msgspec.field(default_factory=dict)
    include: str = ""
    exclude: str = ""
    num_gpus: int | None = None
    num_nodes: int | None = None
    hostfile: str | None = None
    mpi_slots: tuple[int, ...] = ()
    master_addr: str | None = None
    master_port: int | None = None
    config_path: str | None = None
    problems: tuple[str, ...] = ()

    @property
    def by_python_alone(self) -> bool:
        """Whether Python starts the script, without a launcher in front of it."""
        return self.launcher == "python" and self.inner is None

    def script_options(self) -> Iterator[tuple[str, str]]:
        """Options among the script's arguments: names with `_` for `-`, and values, "" for none.

        >>> list(LaunchCommand(script_args=("--a-b", "1", "c", "--d=2", "--e")).script_options())
        [('a_b', '1'), ('d', '2'), ('e', '')]
        """
        words = self.script_args
        for word, after in zip(words, (*words, "--")[1:], strict=True):
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                given = value if equals else "" if after.startswith("-") else after
                yield name.replace("-", "_"), given

    def on_cpu(self, variables: Mapping[str, str] = _NOTHING) -> bool:
        """Whether an option, or a variable besides those of the command, keeps it on the CPU.

        >>> LaunchCommand(script_args=("--no_cuda",)).on_cpu()
        True
        >>> LaunchCommand(script_args=("--use_cpu=false",)).on_cpu()
        False
        >>> LaunchCommand(script_args=("--cpu", "8")).on_cpu()
        False
        """
        given = [*self.options.items(), *self.script_options()]
        for name, value in given:  # `--cpu 8` is a number of cores
            if name in ON_CPU and value.lower() not in _OFF and whole(value) in (None, 1):
                return True
        known = {**variables, **self.env}
        return known.get("DS_ACCELERATOR") == "cpu" or known.get("CUDA_VISIBLE_DEVICES") in (
            "",
            "-1",
        )

    def has_script_option(self, *beginnings: str) -> bool:
        """Whether the name of one of the script's options begins so, `_` for `-`."""
        return any(name.startswith(beginnings) for name, _ in self.script_options())

    @staticmethod
    def filter_slots(text: str) -> dict[str, tuple[int, ...] | None] | None:
        """Hosts and slots of an `--include` or `--exclude` value; None when it is malformed.

        >>> LaunchCommand.filter_slots("node-a:0,1@node-b")
        {'node-a': (0, 1), 'node-b': None}
        """
        found: dict[str, tuple[int, ...] | None] = {}
        for part in text.split("@"):
            host, colon, slots = part.partition(":")
            if not host or (colon and not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", slots)):
                return None
            found[host] = tuple(sorted({int(slot) for slot in slots.split(",")})) if colon else None
        return found


class LaunchParse(Fact, frozen=True, kw_only=True):
    """The verdict of the launcher's own parser on the command line.

    Attributes:
        launcher: `deepspeed`, `torchrun` or `accelerate`.
        accepted: it accepts every option.
        error: its message otherwise.
        ignored: keys of `deepspeed_config` in accelerate's configuration, and `section.key` of
            other sections, that accelerate does not read, each with the option that has a similar
            name ("" = none has).
        ended: keys of accelerate's configuration that its newer releases stop at, or whose value
            they do; each with the sentence that says so. Only if the release is not known.
        in_file: a value in accelerate's configuration file stops the run.
        in_ranks: not the parser rejects it, but a plugin of accelerate in each rank.
        advice: what to write instead, in the configuration file or on the line.
        too_few_ranks: accelerate's `num_processes` and `num_machines` if the first is the smaller
            one, so that no machine starts a rank; None if it is not.
    """

    launcher: str
    accepted: bool
    error: str = ""
    ignored: dict[str, str] = {}
    ended: dict[str, str] = {}
    in_file: bool = False
    in_ranks: bool = False
    advice: str = ""
    too_few_ranks: tuple[int, int] | None = None


class Numactl(Fact, frozen=True, kw_only=True):
    """`numactl`, with which the deepspeed launcher binds ranks to cores, or counts a CPU's nodes.

    Attributes:
        path: the program on PATH; None = there is none.
        error: why it does not work here (`No NUMA available on this system`); "" = it works.
        binds: the command binds ranks; otherwise the launcher only counts nodes.
    """

    path: str | None = None
    error: str = ""
    binds: bool = True


class LaunchFiles(Fact, frozen=True, kw_only=True):
    """Whether the program and script of the command after `check --` exist.

    Attributes:
        program: the program; None if it cannot be determined (shell syntax, a shell builtin).
        program_path: its path, on PATH or next to the interpreter; None = not found.
        program_not_executable: it is a path to a file that no account may execute, or such a
            file next to the interpreter, which a shell does not find on PATH.
        script: the training script, or the one that a shell runs; None if there is none or its
            path contains shell syntax.
        script_path: the path that was checked.
        script_exists: it exists; None = unknown.
        script_wrong: why a script that does not exist is none: `typographic` (it begins with a dash
            or quote that a document has put there), `blank`, or `no ending` (with `.py` it exists);
            "" = unknown.
        script_folder: the only folder in the neighborhood in which a script that does not exist
            would be found, as a path from `folder`; "" = there is none.
        line_ends: the line of a shell script that starts the job, if it ends with a carriage
            return; "" = it does not, or there is none.
        line_ends_fatal: the carriage return becomes a part of the script's name, or cuts off the
            rest of the command; otherwise, a part of the last argument.
        launcher_config: the configuration passed with `accelerate launch --config_file`; None
            if there is none or its path contains shell syntax.
        launcher_config_exists: it exists; None = unknown.
        folder: working directory of the command.
        missing_module: the module after `-m` if its package does not contain it, or the
            interpreter does not find its package; None = it exists, there is none, or it cannot be
            determined.
        module_folder: the package that does not contain it; "" = that package is not found.
        module_near: a module of that package with a similar name; "" = there is none.
        resumed: folder of the checkpoint that the script's arguments resume from; None if they
            name none.
        loaded: folder that the script loads a checkpoint of DeepSpeed from; None if it is not
            known.
        model: the model that the script's arguments name; None if there is none.
        model_folder: its folder, if it is one on this machine.
        model_missing: it is a path, and does not exist here.
        model_denied: it is a folder whose files this account may not read.
        model_lacks: files that are missing from its folder: `config.json`, or weights that their
            index lists.
        model_base: the model that an adapter in its folder was trained on, if that is a path that
            does not exist here; "" = it exists, or there is no such adapter.
        model_cached: whether the hub's cache holds that model; None if it is a folder, or no name
            of the hub.
        model_tokenizer: a file of SentencePiece in the model's folder, if that is the only form of
            its tokenizer there; "" = it is not, or the tokenizer is another one.
    """

    program: str | None = None
    program_path: str | None = None
    program_not_executable: bool = False
    script: str | None = None
    script_path: str | None = None
    script_exists: bool | None = None
    script_wrong: str = ""
    script_folder: str = ""
    line_ends: str = ""
    line_ends_fatal: bool = False
    launcher_config: str | None = None
    launcher_config_exists: bool | None = None
    folder: str = "."
    missing_module: str | None = None
    module_folder: str = ""
    module_near: str = ""
    resumed: str | None = None
    loaded: str | None = None
    model: str | None = None
    model_folder: str | None = None
    model_missing: bool = False
    model_denied: bool = False
    model_lacks: tuple[str, ...] = ()
    model_base: str = ""
    model_cached: bool | None = None
    model_tokenizer: str = ""


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A host of a hostfile.

    Attributes:
        host: its name.
        slots: GPUs to use on it.
        line: line number, from 1.
    """

    host: str
    slots: int
    line: int


class LineProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A line that its reader rejects.

    Attributes:
        line: line number, from 1; 0 = the file as a whole.
        text: the line.
        reason: what is wrong with it.
    """

    line: int
    text: str
    reason: str


class Hostfile(Fact, frozen=True, kw_only=True):
    """The hostfile, parsed by the grammar of the deepspeed launcher.

    Attributes:
        path: the file, as given.
        asked: it was passed on a command line; False = the launcher's default path.
        exists: the file exists.
        entries: hosts in order.
        problems: lines that make the launcher stop.
    """

    path: str
    asked: bool = True
    exists: bool = True
    entries: tuple[HostEntry, ...] = ()
    problems: tuple[LineProblem, ...] = ()

    @property
    def slots(self) -> int:
        """Total number of slots."""
        return sum(entry.slots for entry in self.entries)


class DeepSpeedEnvFile(Fact, frozen=True, kw_only=True):
    """The file of variables that the deepspeed launcher exports to other nodes.

    Attributes:
        path: the file.
        names: names of the variables that it sets.
        problems: lines that crash the launcher or do not have the effect they appear to have.
    """

    path: str
    names: tuple[str, ...] = ()
    problems: tuple[LineProblem, ...] = ()


class MasterAddress(Fact, frozen=True, kw_only=True):
    """What the name of the master address resolves to on this node.

    Attributes:
        host: as the command or `MASTER_ADDR` gives it.
        addresses: of that name; empty = it does not resolve.
    """

    host: str
    addresses: tuple[str, ...] = ()


class MasterPort(Fact, frozen=True, kw_only=True):
    """Whether the rendezvous port is free on this node.

    Attributes:
        host: the master address; "" = this node.
        port: the port.
        asked: it was given; False = the launcher's default.
        taken: a socket of this node listens on it.
        holder: command and process id of the listener, if visible.
        remote: the host is another node, which was probed by a connection.
        reserved: only root may open it on this node, and the job does not run as root.
    """

    host: str = ""
    port: int
    asked: bool = False
    taken: bool = False
    holder: str | None = None
    remote: bool = False
    reserved: bool = False
