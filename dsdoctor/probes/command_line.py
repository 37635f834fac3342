"""Parses the command after `check --`: launcher, its options, script, configuration."""

from __future__ import annotations

import itertools
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.redact import mask_words
from dsdoctor.probes.command_options import (
    after_starter,
    among_arguments,
    launcher_options,
    launches_at,
)
from dsdoctor.probes.command_tables import (
    MODULES,
    PROGRAMS,
    STARTERS,
    SWITCHES,
)
from dsdoctor.probes.command_wrappers import unwrap
from dsdoctor.probes.mpi_hosts import with_slots
from dsdoctor.probes.yaml_files import accelerate_values

_LAST_PORT = 65535
_FILLED_IN = re.compile(r"\$(?:\w+|\{\w+(?:\[[@*]\])?\}|@|\{@\})")
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
#: Programs that start containers, and the variables that mean the same in one as outside.
_STARTS_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "apptainer", "singularity"})
_OF_LIBRARIES = ("NCCL_", "TORCH_", "PYTORCH_")
#: Starters whose options count nodes; `-N` of mpirun and aprun counts ranks of a node.
_COUNT_NODES = frozenset({"srun", "flux"})


def after_sbatch(words: Sequence[str]) -> tuple[str, list[str]]:
    """The command of `--wrap`, and the script with its arguments.

    >>> after_sbatch(["-N", "2", "--gpus=8", "--parsable", "job.sh", "7"])
    ('', ['job.sh', '7'])
    """
    options, rest = after_starter("sbatch", list(words))
    return options.get("wrap", ""), rest


#: Short options of sbatch by the names of the long ones (sbatch(1) of Slurm 22.05 and 25.05).
_SBATCH_NAMES = {
    "N": "nodes",
    "n": "ntasks",
    "G": "gpus",
    "c": "cpus_per_task",
    "o": "output",
    "e": "error",
    "D": "chdir",
}


def batch_options(text: str, words: Sequence[str] = ()) -> dict[str, str]:
    r"""Options of a Slurm job: of its script's `#SBATCH` lines, and of `sbatch`, which win.

    sbatch reads such lines up to the first command of the script.

    >>> script = "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:8  # all\ntrue\n#SBATCH -n 9\n"
    >>> batch_options(script), batch_options(script, ["-N1"])
    ({'nodes': '2', 'gres': 'gpu:8'}, {'nodes': '1', 'gres': 'gpu:8'})
    """
    found: dict[str, str] = {}
    for row in text.splitlines():
        line = row.strip()
        if line and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            try:
                given = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:  # sbatch refuses the line itself
                continue
            if given[:1] == ["hetjob"]:  # the request of another component
                break
            found |= _long_names(after_starter("sbatch", given)[0])
    return found | _long_names(after_starter("sbatch", list(words))[0])


def _long_names(options: dict[str, str]) -> dict[str, str]:
    return {_SBATCH_NAMES.get(name, name): value for name, value in options.items()}


def _program(words: list[str]) -> tuple[str, list[str]]:
    """Which launcher a command starts, and the words after it."""
    if not words:
        return "other", []
    name = posixpath.basename(words[0]).removesuffix(".exe")
    if name in PROGRAMS:
        place = launches_at(name, words[1:])
        return ("other", words[1:]) if place is None else (PROGRAMS[name], words[1 + place :])
    if not _PYTHON.match(name):
        return "other", words[1:]
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] not in {"-m", "-c", "-"}:
        if rest.pop(0) in {"-X", "-W"} and rest:
            rest.pop(0)
    if rest[:1] == ["-m"] and len(rest) > 1 and rest[1] in MODULES:
        of_cli = rest[1].endswith("accelerate_cli")
        if of_cli and rest[2:3] != ["launch"]:
            return "other", rest[2:]
        return MODULES[rest[1]], rest[3 if of_cli else 2 :]
    return "python", rest


def _number(options: dict[str, str], *names: str) -> int | None:
    for name in names:
        if re.fullmatch(r"-?[0-9]{1,18}", options.get(name, "")):
            return int(options[name])
    return None


def _is_port(options: dict[str, str], name: str) -> bool:
    return 0 <= (_number(options, name) or 0) <= _LAST_PORT


def _script(
    launcher: str, options: dict[str, str], rest: list[str]
) -> tuple[str | None, list[str]]:
    if launcher == "colossalai" and options.get("m"):
        return options["m"], rest
    if launcher == "python" and rest[:1] == ["-m"]:
        return (rest[1], rest[2:]) if len(rest) > 1 else (None, [])
    if launcher == "python" and rest[:1] in (["-c"], ["-"]):
        return None, rest[1:]
    return (rest[0], rest[1:]) if rest else (None, [])


def _config_of(command: LaunchCommand) -> str | None:
    """The DeepSpeed config that the launcher's or the script's options name."""
    given = command.options.get("deepspeed_config_file")
    named = (
        value
        for name, value in command.script_options()
        if name in ("deepspeed", "deepspeed_config", "ds_config")
    )
    return given or next((value for value in named if value and not value.startswith("-")), None)


def _of_container(words: Sequence[str]) -> dict[str, str]:
    """Variables for libraries that options set in the container that a command starts.

    >>> _of_container(["docker", "run", "-e", "NCCL_DEBUG=INFO", "x", "python", "-e", "NCCL_A=1"])
    {'NCCL_DEBUG': 'INFO'}
    """
    found: dict[str, str] = {}
    for before, word in itertools.pairwise(words):
        name = posixpath.basename(word)
        if name in PROGRAMS or _PYTHON.match(name):
            break
        option, _, value = word.partition("=")
        given = value if option == "--env" else word if before in ("-e", "--env") else ""
        key, equals, text = given.partition("=")
        if equals and key.startswith(_OF_LIBRARIES):
            found[key] = text
    return found


def is_filled_in(word: str) -> bool:
    """Whether a word is nothing but a variable, which may hold options of the launcher.

    >>> is_filled_in("${ARGS[@]}"), is_filled_in("$RUN"), is_filled_in("$DIR/t.py")
    (True, True, False)
    """
    return _FILLED_IN.fullmatch(word) is not None


def _per_node(launcher: str, options: dict[str, str], rest: Sequence[str]) -> int | None:
    """Ranks on a node, where `rest` follows the options."""
    if launcher == "deepspeed":
        return _number(options, "num_gpus", "num_accelerators")
    if launcher == "torchrun":
        if "nproc_per_node" in options:
            return _number(options, "nproc_per_node")
        return None if is_filled_in("".join(rest[:1])) else 1
    if launcher == "accelerate":
        processes = _number(options, "num_processes")
        machines = _number(options, "num_machines") or 1
        return None if processes is None else max(1, processes // machines)
    if launcher == "srun":
        return _number(options, "ntasks_per_node")
    if launcher == "flux":
        return _number(options, "tasks_per_node")
    if launcher == "colossalai":
        return _number(options, "nproc_per_node")
    if launcher == "composer":
        return _number(options, "nproc")
    return None


def _endpoint(launcher: str, options: dict[str, str]) -> tuple[str | None, int | None]:
    if launcher == "accelerate":
        return options.get("main_process_ip"), _number(options, "main_process_port")
    host, port = options.get("master_addr"), _number(options, "master_port")
    if launcher == "torchrun" and options.get("rdzv_endpoint"):
        host, _, text = options["rdzv_endpoint"].rpartition(":")
        port = int(text) if re.fullmatch("[0-9]{1,9}", text) else None
    return (None if "$" in (host or "") else host or None), port


def _known(options: dict[str, str], name: str) -> str:
    """The value of an option, "" if only the shell of the script around it knows it."""
    value = options.get(name, "")
    return "" if "$" in value else value


def _numbers(launcher: str, options: dict[str, str]) -> tuple[str, ...]:
    """Options of this launcher that must be numbers."""
    if launcher == "deepspeed":
        return ("num_gpus", "num_nodes", "master_port")
    if launcher == "accelerate":
        return ("main_process_port",)
    # torchrun lets a rendezvous choose the port
    elsewhere = {"rdzv_endpoint", "rdzv_backend", "standalone"} & options.keys()
    return ("master_port",) if launcher == "torchrun" and not elsewhere else ()


def _is_port_wrong(endpoint: str) -> bool:
    """Whether torch 2.0-2.13 rejects a rendezvous endpoint (elastic/rendezvous/utils.py)."""
    _, colon, port = endpoint.strip().rpartition(":")
    if not colon or any(mark in endpoint for mark in "$`<{"):  # for a shell, or a placeholder
        return False
    return not re.fullmatch("[0-9]{1,5}", port) or int(port) > _LAST_PORT


def parse_command(argv: Sequence[str]) -> LaunchCommand:
    """Parses a launch command.

    >>> found = parse_command(["deepspeed", "--num_gpus=4", "train.py", "--lr", "1"])
    >>> found.launcher, found.num_gpus, found.script, found.script_args
    ('deepspeed', 4, 'train.py', ('--lr', '1'))
    """
    clean = tuple(mask_words(tuple(argv)))
    words, env = unwrap(list(clean))
    program = words[0] if words else ""
    launcher, rest = _program(words)
    inner: str | None = None
    options: dict[str, str] = {}
    outer: dict[str, str] = {}
    ruling = launcher
    started: list[str] = []
    if posixpath.basename(program) in _STARTS_CONTAINERS:
        env |= _of_container(words)
    if launcher in STARTERS:
        outer, rest = after_starter(launcher, rest, env)
        rest, more = unwrap(rest)
        env |= more
        started = rest[:1]
        inner, rest = _program(rest)
        ruling = inner
        inner = inner if inner in SWITCHES else None
        options = outer
    if ruling in SWITCHES:
        anywhere = ruling == "colossalai"
        options, rest = among_arguments(rest) if anywhere else launcher_options(ruling, rest)
    if ruling == "other":  # a word that only a shell fills in may be the program or an option
        unknown = [word for word in started if word.startswith("$")]
        script, script_args = (unknown[0] if unknown else None), rest
    else:
        script, script_args = _script(ruling, options, rest)
    counted = launcher if ruling in ("python", "other") else ruling
    own = ("nodes", "N") if counted in _COUNT_NODES else ()
    nodes = _number(options, "num_nodes", "nnodes", "num_machines", *own)
    host, port = _endpoint(ruling, options)
    problems = tuple(
        f"--{name} {options[name]}"
        for name in _numbers(ruling, options)
        if "$" not in options.get(name, "$")  # a shell may still replace it
        and (_number(options, name) is None or ("port" in name and not _is_port(options, name)))
    )
    if ruling == "torchrun" and _is_port_wrong(options.get("rdzv_endpoint", "")):
        problems = (*problems, f"--rdzv_endpoint {options['rdzv_endpoint']}")
    found = LaunchCommand(
        argv=clean,
        program=program,
        launcher=launcher,
        inner=inner,
        outer=outer,
        script=script,
        script_args=tuple(script_args),
        env=env,
        options=options,
        include=_known(options, "include") if ruling == "deepspeed" else "",
        exclude=_known(options, "exclude") if ruling == "deepspeed" else "",
        num_gpus=_per_node(counted, options, rest),
        num_nodes=nodes,
        hostfile=(_known(options, "hostfile") or None) if ruling == "deepspeed" else None,
        master_addr=host,
        master_port=port,
        problems=problems,
    )
    return msgspec.structs.replace(found, config_path=_config_of(found))


@probe
def launch_command(host: Host, run: RunNeeds) -> LaunchCommand:
    """The command after `check --`, with the settings from accelerate's configuration."""
    command = command_of(run)
    if command is None:
        raise HostError(Why.NOT_ASKED, "no command was passed (`check -- CMD`)")
    command = with_slots(command, host, run.cwd)
    return with_accelerate(command, accelerate_values(command, host, run.cwd))


def command_of(run: RunNeeds) -> LaunchCommand | None:
    """The command of a run, from its words alone; None = no command."""
    words = run.command
    if not words:
        return None
    return parse_command(shlex.split(words[0]) if len(words) == 1 and " " in words[0] else words)


def started(argv: Sequence[str], *, runners: bool = True) -> list[str]:
    """The program that a command starts behind prefixes, `srun` or `mpirun`, with its arguments.

    Args:
        argv: the command.
        runners: `uv run` and its like count as prefixes too.

    >>> started(["sudo", "srun", "-N2", "env", "A=1", "apptainer", "exec", "x.sif", "true"])
    ['apptainer', 'exec', 'x.sif', 'true']
    """
    words, _ = unwrap(list(argv), runners=runners)
    launcher, rest = _program(words)
    if launcher in STARTERS:
        words, _ = unwrap(after_starter(launcher, rest)[1], runners=runners)
    return words


def launcher_words(run: RunNeeds) -> list[str]:
    """The words after the launcher's name, as the launcher gets them."""
    words, _ = unwrap(list(run.command))
    launcher, rest = _program(words)
    if launcher in STARTERS:
        _, rest = after_starter(launcher, rest)
        rest, _ = unwrap(rest)
        _, rest = _program(rest)
    return rest


def with_accelerate(command: LaunchCommand, values: Mapping[str, Any]) -> LaunchCommand:
    """Adds settings from accelerate's configuration; the command line takes precedence.

    `num_processes` counts all nodes (accelerate 1.15 `commands/launch.py`).
    """

    def whole(name: str) -> int | None:
        value = values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    nodes = command.num_nodes or whole("num_machines")
    ranks = whole("num_processes")
    per_node = command.num_gpus
    if per_node is None and ranks is not None:
        per_node = ranks // max(nodes or 1, 1)
    ids = values.get("gpu_ids")
    given = {"gpu_ids": ids} if isinstance(ids, str) else {}
    if values.get("use_cpu") is True:
        given["cpu"] = ""
    kind = values.get("distributed_type")
    if values.get("compute_environment") == "AMAZON_SAGEMAKER":  # which starts the nodes itself
        kind = "AMAZON_SAGEMAKER"
    if isinstance(kind, str):
        given["distributed_type"] = kind
    address = values.get("main_process_ip")
    port = whole("main_process_port") if command.master_port is None else None
    wrong = () if port is None or 0 <= port <= _LAST_PORT else (f"main_process_port {port}",)
    return msgspec.structs.replace(
        command,
        num_nodes=nodes,
        num_gpus=per_node,
        options=given | command.options,
        master_addr=command.master_addr or (address if isinstance(address, str) else None),
        master_port=command.master_port or port,
        problems=(*command.problems, *wrong),
    )
