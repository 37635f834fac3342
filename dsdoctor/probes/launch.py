"""Reads how the job is to be started: command line, hostfile, `.deepspeed_env`, master port."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.launch import (
    DeepSpeedEnvFile,
    HostEntry,
    Hostfile,
    LaunchCommand,
    LineProblem,
    MasterPort,
)
from dsdoctor.model.facts.run import RunNeeds

#: deepspeed/launcher/runner.py (0.19.8)
DEFAULT_HOSTFILE = "/job/hostfile"
DEFAULT_PORT = 29500

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"(python|pypy)[\d.]*$")
_HOST_LINE = re.compile(r"^(\S+)\s+slots=(\d+)")
_SECRET = re.compile(r"(?i)(api[_-]?key|token|passw(?:or)?d|secret)(=.+)?$")
_SECRET_VALUE = re.compile(
    r"(?i)(hf_[A-Za-z0-9]{20,}|ghp_\w{20,}|sk-\w{20,})|(?<=://)[^/@\s]+:[^/@\s]+@",
)

_MODULES = {
    "deepspeed": "deepspeed",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
}
_PROGRAMS = {
    "deepspeed": "deepspeed",
    "deepspeed.pt": "deepspeed",
    "ds": "deepspeed",
    "torchrun": "torchrun",
    "accelerate": "accelerate",
    "accelerate-launch": "accelerate",
    "srun": "srun",
    "mpirun": "mpirun",
    "mpiexec": "mpirun",
    "orterun": "mpirun",
}
#: Programs that start another one; their own options with a separate value.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "nohup": frozenset(),
    "time": frozenset(),
    "exec": frozenset(),
    "nice": frozenset({"-n"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "setsid": frozenset(),
    "timeout": frozenset({"-s", "-k"}),
    "numactl": frozenset({"-N", "-m", "-C"}),
    "taskset": frozenset(),
    "sudo": frozenset({"-u", "-g"}),
}
_RUNNERS = [(name, ["run"]) for name in ("uv", "poetry", "pipenv", "pdm", "conda", "mamba")]
_RUNNER_TAKES = frozenset(
    {"--with", "--extra", "--python", "--env-file", "-n", "--name", "-p", "--prefix", "--cwd"},
)
#: Switches: the options of each launcher that take no value.
_SWITCHES: dict[str, frozenset[str]] = {
    # deepspeed 0.19.8 launcher/runner.py
    "deepspeed": frozenset(
        [
            "h",
            "help",
            "module",
            "no_python",
            "no_local_rank",
            "no_ssh",
            "no_ssh_check",
            "force_multi",
            "save_pid",
            "bind_cores_to_rank",
            "quiet",
            "q",
            "V",
            "version",
        ],
    ),
    # torch 2.13 distributed/run.py
    "torchrun": frozenset(
        [
            "h",
            "help",
            "standalone",
            "m",
            "module",
            "no_python",
            "run_path",
            "use_env",
            "disable_numa",
        ],
    ),
    # accelerate 1.15 commands/launch.py
    "accelerate": frozenset(
        [
            "h",
            "help",
            "q",
            "quiet",
            "cpu",
            "multi_gpu",
            "tpu",
            "ipex",
            "use_mps_device",
            "use_deepspeed",
            "use_fsdp",
            "use_parallelism_config",
            "use_megatron_lm",
            "use_xpu",
            "m",
            "module",
            "no_python",
            "debug",
            "enable_cpu_affinity",
            "tpu_cluster",
            "no_tpu_cluster",
            "dynamo_use_fullgraph",
            "dynamo_use_dynamic",
            "dynamo_use_regional_compilation",
        ],
    ),
}
_SHORT: dict[str, dict[str, str]] = {
    "deepspeed": {"H": "hostfile", "i": "include", "e": "exclude"},
    "torchrun": {"m": "module"},
    "accelerate": {"m": "module"},
}
#: Long names, for argparse accepts any unambiguous beginning of one.
_LONG: dict[str, list[str]] = {
    "deepspeed": [
        "hostfile",
        "include",
        "exclude",
        "num_nodes",
        "min_elastic_nodes",
        "max_elastic_nodes",
        "num_gpus",
        "num_accelerators",
        "master_port",
        "master_addr",
        "node_rank",
        "launcher",
        "launcher_args",
        "module",
        "no_python",
        "no_local_rank",
        "no_ssh",
        "no_ssh_check",
        "force_multi",
        "save_pid",
        "enable_each_rank_log",
        "autotuning",
        "elastic_training",
        "bind_cores_to_rank",
        "bind_core_list",
        "ssh_port",
        "venv_script",
        "log_level",
        "quiet",
    ],
    "torchrun": [
        "nnodes",
        "nproc_per_node",
        "rdzv_backend",
        "rdzv_endpoint",
        "rdzv_id",
        "rdzv_conf",
        "standalone",
        "max_restarts",
        "monitor_interval",
        "start_method",
        "event_log_handler",
        "role",
        "module",
        "no_python",
        "run_path",
        "log_dir",
        "redirects",
        "tee",
        "node_rank",
        "master_addr",
        "master_port",
        "local_addr",
        "logs_specs",
        "numa_binding",
    ],
}
#: Options of srun that take a separate value in their short form (slurm 24.05).
_SRUN_SHORT = frozenset("AcDdeGghiJLMmNnopqrTtwx")
_SRUN_SWITCHES = frozenset(
    [
        "exclusive",
        "overlap",
        "mpi",
        "label",
        "unbuffered",
        "verbose",
        "quiet",
        "no_kill",
        "preserve_env",
        "pty",
        "kill_on_bad_exit",
        "oversubscribe",
        "wait_all_nodes",
        "multi_prog",
        "spread_job",
        "use_min_nodes",
        "disable_status",
        "exact",
    ],
)
#: Options of mpirun with more than one value.
_MPI_TWO = frozenset({"mca", "gmca"})
_MPI_SWITCHES = frozenset(
    [
        "allow_run_as_root",
        "oversubscribe",
        "nooversubscribe",
        "tag_output",
        "bynode",
        "byslot",
        "report_bindings",
        "display_map",
        "display_allocation",
        "v",
        "q",
        "bind_to_core",
        "bind_to_none",
        "use_hwthread_cpus",
    ],
)


def _masked(argv: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    hide = False
    for word in argv:
        if hide and not word.startswith("-"):
            found.append("***")
            hide = False
            continue
        name, equals, _ = word.partition("=")
        secret = bool(_SECRET.search(name))
        hide = secret and not equals and word.startswith("-")
        found.append(f"{name}=***" if secret and equals else _SECRET_VALUE.sub("***", word))
    return tuple(found)


def _drop_options(words: list[str], takes: frozenset[str]) -> list[str]:
    while words and words[0].startswith("-"):
        if words.pop(0) in takes and words:
            words.pop(0)
    return words


def _unwrap(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Takes away what stands in front of the program: assignments, `env`, `nohup`, `uv run`."""
    env: dict[str, str] = {}
    while words:
        name = posixpath.basename(words[0])
        if _ASSIGNMENT.match(words[0]):
            key, _, value = words.pop(0).partition("=")
            env[key] = value
        elif name in _WRAPPERS:
            words = _drop_options(words[1:], _WRAPPERS[name])
            if name in {"timeout", "taskset"} and words:
                words.pop(0)
        elif (name, words[1:2]) in _RUNNERS:
            words = _drop_options(words[2:], _RUNNER_TAKES)
        else:
            break
    return words, env


def _full_name(launcher: str, name: str) -> str:
    name = name.replace("-", "_")
    known = _LONG.get(launcher, [])
    if name in known:
        return name
    begun = [long for long in known if long.startswith(name)]
    return begun[0] if len(begun) == 1 else name


def _options(launcher: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The launcher's options, and what follows them."""
    found: dict[str, str] = {}
    switches = _SWITCHES[launcher]
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = _full_name(launcher, name)
        else:
            name, equals, value = word[1:2], word[2:3], word[2:].removeprefix("=")
            name = _SHORT[launcher].get(name, name)
        if not equals and name not in switches:
            value = words.pop(0) if words else ""
        found[name] = value
    return found, words


def _after_starter(launcher: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options of srun or mpirun, and the program that they start."""
    found: dict[str, str] = {}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if launcher == "srun" and not word.startswith("--"):
            name, value = word[1:2], word[2:]
            takes = name in _SRUN_SHORT and not value
        elif launcher == "srun":
            takes = not equals and name not in _SRUN_SWITCHES
        else:
            takes = not equals and name not in _MPI_SWITCHES
        if takes and words:
            value = words.pop(0)
            if name in _MPI_TWO and words:
                value += f" {words.pop(0)}"
        found[name] = value
    return found, words


def _program(words: list[str]) -> tuple[str, list[str]]:
    """Which launcher a command starts, and the words behind it."""
    if not words:
        return "other", []
    name = posixpath.basename(words[0]).removesuffix(".exe")
    if name in _PROGRAMS:
        kind = _PROGRAMS[name]
        rest = words[1:]
        if name == "accelerate":
            return ("accelerate", rest[1:]) if rest[:1] == ["launch"] else ("other", rest)
        return kind, rest
    if not _PYTHON.match(name):
        return "other", words[1:]
    rest = words[1:]
    while rest and rest[0].startswith("-") and rest[0] not in {"-m", "-c", "-"}:
        if rest.pop(0) in {"-X", "-W"} and rest:
            rest.pop(0)
    if rest[:1] == ["-m"] and len(rest) > 1 and rest[1] in _MODULES:
        return _MODULES[rest[1]], rest[2:]
    return "python", rest


def _number(options: dict[str, str], *names: str) -> int | None:
    for name in names:
        if re.fullmatch(r"-?\d+", options.get(name, "")):
            return int(options[name])
    return None


def _script(launcher: str, rest: list[str]) -> tuple[str | None, list[str]]:
    if launcher == "python" and rest[:1] == ["-m"]:
        return (rest[1], rest[2:]) if len(rest) > 1 else (None, [])
    if launcher == "python" and rest[:1] in (["-c"], ["-"]):
        return None, rest[1:]
    return (rest[0], rest[1:]) if rest else (None, [])


def _config_of(script_args: Sequence[str], options: dict[str, str]) -> str | None:
    if options.get("deepspeed_config_file"):
        return options["deepspeed_config_file"]
    for index, word in enumerate(script_args):
        name, equals, value = word.partition("=")
        if name not in {"--deepspeed", "--deepspeed_config", "--deepspeed-config", "--ds_config"}:
            continue
        if not equals:
            value = script_args[index + 1] if index + 1 < len(script_args) else ""
        if value and not value.startswith("-"):
            return value
    return None


def _per_node(launcher: str, options: dict[str, str]) -> int | None:
    if launcher == "deepspeed":
        return _number(options, "num_gpus", "num_accelerators")
    if launcher == "torchrun":
        return _number(options, "nproc_per_node") if "nproc_per_node" in options else 1
    if launcher == "accelerate":
        processes = _number(options, "num_processes")
        machines = _number(options, "num_machines") or 1
        return None if processes is None else max(1, processes // machines)
    if launcher == "srun":
        return _number(options, "ntasks_per_node")
    return None


def _endpoint(launcher: str, options: dict[str, str]) -> tuple[str | None, int | None]:
    if launcher == "accelerate":
        return options.get("main_process_ip"), _number(options, "main_process_port")
    host, port = options.get("master_addr"), _number(options, "master_port")
    if launcher == "torchrun" and options.get("rdzv_endpoint"):
        host, _, text = options["rdzv_endpoint"].rpartition(":")
        port = int(text) if text.isdigit() else None
    return host or None, port


def parse_command(argv: Sequence[str]) -> LaunchCommand:
    """Takes a launch command apart.

    >>> found = parse_command(["deepspeed", "--num_gpus=4", "train.py", "--lr", "1"])
    >>> found.launcher, found.num_gpus, found.script, found.script_args
    ('deepspeed', 4, 'train.py', ('--lr', '1'))
    """
    clean = _masked(argv)
    words, env = _unwrap(list(clean))
    program = words[0] if words else ""
    launcher, rest = _program(words)
    inner: str | None = None
    options: dict[str, str] = {}
    outer: dict[str, str] = {}
    ruling = launcher
    if launcher in {"srun", "mpirun"}:
        outer, rest = _after_starter(launcher, rest)
        rest, more = _unwrap(rest)
        env |= more
        inner, rest = _program(rest)
        inner = inner if inner in _SWITCHES else None
        ruling = inner or "python"
        options = outer
    if ruling in _SWITCHES:
        options, rest = _options(ruling, rest)
    if launcher == "other":
        script, script_args = None, rest
    else:
        script, script_args = _script(ruling, rest)
    counted = launcher if ruling == "python" else ruling
    nodes = _number(options, "num_nodes", "nnodes", "num_machines", "nodes", "N")
    host, port = _endpoint(ruling, options)
    problems = tuple(
        f"--{name} {options[name]}"
        for name in ("num_gpus", "num_nodes", "master_port")
        if ruling == "deepspeed" and name in options and _number(options, name) is None
    )
    return LaunchCommand(
        argv=clean,
        program=program,
        launcher=launcher,
        inner=inner,
        script=script,
        script_args=tuple(script_args),
        env=env,
        options=options,
        include=options.get("include", "") if ruling == "deepspeed" else "",
        exclude=options.get("exclude", "") if ruling == "deepspeed" else "",
        num_gpus=_per_node(counted, options),
        num_nodes=nodes,
        hostfile=options.get("hostfile") if ruling == "deepspeed" else None,
        master_addr=host,
        master_port=port,
        config_path=_config_of(script_args, options),
        problems=problems,
    )


def parse_hostfile(text: str, path: str, *, asked: bool = True) -> Hostfile:
    r"""Reads a hostfile by the grammar of the deepspeed launcher.

    >>> parse_hostfile("node-a slots=4\nnode-b 8\\n", "hosts").problems[0].reason
    'it is not of the form `HOST slots=N`'
    """
    entries: list[HostEntry] = []
    problems: list[LineProblem] = []
    seen: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _HOST_LINE.match(line)
        if match is None:
            reason = "it is not of the form `HOST slots=N`"
            problems.append(LineProblem(line=number, text=line, reason=reason))
            continue
        host, slots = match[1], int(match[2])
        if host in seen:
            reason = f"`{host}` stands on line {seen[host]} already"
            problems.append(LineProblem(line=number, text=line, reason=reason))
            continue
        seen[host] = number
        entries.append(HostEntry(host=host, slots=slots, line=number))
    if not entries and not problems:
        problems.append(LineProblem(line=0, text="", reason="it names no host"))
    return Hostfile(path=path, asked=asked, entries=tuple(entries), problems=tuple(problems))


def parse_env_file(text: str, path: str) -> DeepSpeedEnvFile:
    r"""Reads a `.deepspeed_env` as the launcher does: every line is cut at its first `=`.

    >>> parse_env_file("NCCL_DEBUG=INFO\n\n", "e").problems[0].reason
    'the line is empty'
    """
    names: list[str] = []
    problems: list[LineProblem] = []
    for number, raw in enumerate(text.split("\n")[: -1 if text.endswith("\n") else None], 1):
        name, equals, _ = raw.partition("=")
        reason = ""
        if not raw.strip():
            reason = "the line is empty"
        elif not equals:
            reason = "it has no `=`"
        elif not _ASSIGNMENT.match(raw):
            reason = f"`{name}` is no name of a variable"
        if reason:
            shown = f"{name}=…" if equals else name
            problems.append(LineProblem(line=number, text=shown, reason=reason))
        else:
            names.append(name)
    return DeepSpeedEnvFile(path=path, names=tuple(names), problems=tuple(problems))


def _listening(table: str) -> dict[int, list[tuple[str, str]]]:
    """Ports that are listened on, with the hex address and inode of each socket."""
    found: dict[int, list[tuple[str, str]]] = {}
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != "0A":  # noqa: PLR2004  # LISTEN
            continue
        address, _, port = fields[1].rpartition(":")
        found.setdefault(int(port, 16), []).append((address, fields[9]))
    return found


def _holder(host: Host, inodes: set[str]) -> str | None:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    try:
        handles = host.glob("/proc/[0-9]*/fd/[0-9]*")
    except HostError:
        return None
    for handle in handles:
        try:
            target = host.readlink(handle)
        except HostError:
            continue
        if posixpath.basename(target) in wanted:
            process = handle.split("/")[2]
            try:
                name = read_text(host, f"/proc/{process}/comm").strip()
            except HostError:
                name = "process"
            return f"{name} (pid {process})"
    return None


def _addresses(host: Host) -> set[str]:
    """IPv4 addresses of this node."""
    try:
        table = read_text(host, "/proc/net/fib_trie")
    except HostError:
        return set()
    return set(re.findall(r"\|-- (\S+)\s+/32 host LOCAL", table))


def _is_local(host: Host, name: str) -> bool:
    if name in {"", "localhost", "0.0.0.0", "::1"} or name.startswith("127."):  # noqa: S104
        return True
    if name in _addresses(host):
        return True
    try:
        own = read_text(host, "/proc/sys/kernel/hostname").strip()
    except HostError:
        return False
    return name.partition(".")[0] == own.partition(".")[0]


@probe
def launch_command(run: RunNeeds) -> LaunchCommand:
    """The command behind `check --`."""
    if not run.command:
        raise HostError(Why.NOT_ASKED, "no command was given (`check -- CMD`)")
    words = run.command
    return parse_command(shlex.split(words[0]) if len(words) == 1 and " " in words[0] else words)


def _command(run: RunNeeds) -> LaunchCommand | None:
    return launch_command.function(run) if run.command else None


@probe
def hostfile(host: Host, run: RunNeeds) -> Hostfile:
    """The hostfile given with --hostfile, that of the command, or the launcher's default."""
    command = _command(run)
    named = run.hostfile or (command.hostfile if command else None)
    path = named or DEFAULT_HOSTFILE
    where = posixpath.join(run.cwd, path)
    try:
        text = read_text(host, where)
    except HostError as error:
        if error.missing.why is not Why.ABSENT:
            raise
        if not named:
            raise HostError(Why.NOT_ASKED, "no hostfile was given (`--hostfile FILE`)") from None
        return Hostfile(path=path, exists=False)
    return parse_hostfile(text, path, asked=bool(named))


@probe
def deepspeed_env_file(host: Host, run: RunNeeds) -> DeepSpeedEnvFile:
    """`.deepspeed_env` of the home, then of the working folder; `DS_ENV_FILE` renames it."""
    name = host.env.get("DS_ENV_FILE") or ".deepspeed_env"
    home = host.env.get("HOME")
    found = [
        path
        for folder in (home, run.cwd)
        if folder and exists(host, path := posixpath.join(folder, name))
    ]
    facts = [parse_env_file(read_text(host, path), path) for path in dict.fromkeys(found)]
    if not facts:
        raise HostError(Why.ABSENT, f"there is no `{name}`")
    return next((fact for fact in facts if fact.problems), facts[-1])


#: What a try to connect to another node may take.
CONNECT_SECONDS = 3.0


def _answers(host: Host, address: str, port: int) -> bool:
    """Whether somebody listens on a port of another node; HostError where that cannot be told."""
    reason = host.connect(address, port, CONNECT_SECONDS)
    if reason is None or "refused" in reason.lower():
        return reason is None
    raise HostError(
        Why.UNSUPPORTED, f"whether port {port} of `{address}` is free cannot be told ({reason})"
    )


@probe
def master_port(host: Host, run: RunNeeds) -> MasterPort:
    """Whether the master port is free, from the kernel's list of sockets; binds nothing."""
    command = _command(run)
    ruled = command is not None and (command.inner or command.launcher) in _SWITCHES
    variables: dict[str, str] = dict(host.env) | (command.env if command else {})
    address = (command.master_addr if command else None) or ""
    port = command.master_port if command else None
    asked = port is not None
    if not ruled:
        address = address or variables.get("MASTER_ADDR", "")
        text = variables.get("MASTER_PORT", "")
        if port is None and text.isdigit():
            port, asked = int(text), True
    if command is not None and "standalone" in command.options:
        raise HostError(Why.NOT_ASKED, "torchrun --standalone takes a free port by itself")
    if port == 0:
        raise HostError(Why.NOT_ASKED, "port 0 takes a free port by itself")
    rank = (
        command.options.get("node_rank", command.options.get("machine_rank")) if command else None
    )
    if rank not in {None, "0", "-1"}:
        raise HostError(Why.NOT_ASKED, f"the master port is node 0's, and this is node {rank}")
    port = DEFAULT_PORT if port is None else port
    if not _is_local(host, address):
        taken = _answers(host, address, port)
        return MasterPort(host=address, port=port, asked=asked, taken=taken, remote=True)
    sockets = _tables(host).get(port, [])
    holder = _holder(host, {inode for _, inode in sockets}) if sockets else None
    return MasterPort(host=address, port=port, asked=asked, taken=bool(sockets), holder=holder)


def _tables(host: Host) -> dict[int, list[tuple[str, str]]]:
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, "ports are read from /proc, which is Linux's")
    found = _listening(read_text(host, "/proc/net/tcp"))
    try:
        more = _listening(read_text(host, "/proc/net/tcp6"))
    except HostError:
        more = {}
    for port, sockets in more.items():
        found.setdefault(port, []).extend(sockets)
    return found


def listening_ports(host: Host) -> frozenset[int]:
    """TCP ports that somebody listens on here, whatever the address.

    Raises:
        HostError: the kernel's table cannot be read, or this is not Linux.
    """
    return frozenset(_tables(host))
