"""Commands, hostfiles, environment files and ports."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor.host import HostError
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.launch import LaunchCommand, MasterPort
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import launch_command, parse_command
from dsdoctor.probes.hostfile import deepspeed_env_file, hostfile
from dsdoctor.probes.ports import master_port
from dsdoctor.testing import FakeHost
from tests.checks.machines import LINUX


def port_of(host: FakeHost, run: RunNeeds, *, is_root: bool = True) -> MasterPort:
    """The master port, of a node on which the job runs as root or not."""
    found = master_port.function(host, run, msgspec.structs.replace(LINUX, is_root=is_root))
    assert isinstance(found, MasterPort)
    return found


HEAD = "  sl  local_address rem_address st\n"
LISTENS = HEAD + "   0: 00000000:733C 00000000:0000 0A 0:0 00:0 0 0 0 4711 1\n"
TALKS = HEAD + "   0: 0100007F:733C 0100007F:1234 06 0:0 00:0 0 0 0 4712 1\n"


@pytest.mark.parametrize(
    ("line", "launcher", "script", "ranks", "port"),
    [
        ("deepspeed --num_gpus=2 train.py --lr 1", "deepspeed", "train.py", 2, None),
        ("deepspeed --master_p 5 --module pkg.train", "deepspeed", "pkg.train", None, 5),
        ("torchrun --nproc-per-node 4 --master-port=7 t.py", "torchrun", "t.py", 4, 7),
        ("torchrun --rdzv-endpoint=n:29400 t.py", "torchrun", "t.py", 1, 29400),
        ("python3 -u -m torch.distributed.run t.py", "torchrun", "t.py", 1, None),
        ("accelerate launch --num_processes 4 t.py", "accelerate", "t.py", 4, None),
        ("accelerate config", "other", None, None, None),
        ("A=1 nohup uv run python -X dev t.py", "python", "t.py", None, None),
        ("uv run --extra gpu t.py --deepspeed ds.json", "python", "t.py", None, None),
        ("uv run -m torch.distributed.run --nproc-per-node 2 t.py", "torchrun", "t.py", 2, None),
        ("srun -N 2 --ntasks-per-node=8 python t.py", "srun", "t.py", 8, None),
        ("mpirun --mca btl ^openib -np 4 python t.py", "mpirun", "t.py", None, None),
        ("bash run.sh", "other", None, None, None),
        ("", "other", None, None, None),
    ],
)
def test_commands(
    line: str, launcher: str, script: str | None, ranks: int | None, port: int | None
) -> None:
    found = parse_command(line.split())
    assert isinstance(found, LaunchCommand)
    assert (found.launcher, found.script, found.num_gpus) == (launcher, script, ranks)
    assert found.master_port == port


def test_secrets_of_a_command_do_not_enter() -> None:
    found = parse_command(["python", "t.py", "--hub_token", "abc", "--api-key=xyz"])
    assert "abc" not in str(found)
    assert "xyz" not in str(found)


def test_one_quoted_word_is_a_command_line() -> None:
    run = RunNeeds(command=("deepspeed --num_gpus 2 t.py",))
    assert launch_command.function(FakeHost(), run).num_gpus == 2


def test_hostfile_named_default_and_none() -> None:
    host = FakeHost(files={"/job/hosts": "a slots=2\n"})
    read = hostfile.function
    assert read(host, RunNeeds(hostfile="hosts", cwd="/job")).slots == 2
    line = ("deepspeed", "--hostfile", "hostz", "t.py")
    assert not read(host, RunNeeds(command=line, cwd="/job")).exists
    with pytest.raises(HostError):
        read(host, RunNeeds())


def test_env_file_of_home_and_folder() -> None:
    host = FakeHost(env={"HOME": "/h"}, files={"/h/.deepspeed_env": "A=1\n", "/w/x": ""})
    assert deepspeed_env_file.function(host, RunNeeds(cwd="/w")).names == ("A",)
    with pytest.raises(HostError):
        deepspeed_env_file.function(FakeHost(), RunNeeds())


def test_port_is_read_from_the_kernel() -> None:
    files = {"/proc/net/tcp": LISTENS, "/proc/9/comm": "python\n", "/proc/9/fd/3": ""}
    host = FakeHost(files=files, links={"/proc/9/fd/3": "/proc/9/fd/socket:[4711]"})
    found = port_of(host, RunNeeds())
    assert (found.taken, found.asked, found.holder) == (True, False, "python (pid 9)")
    other = RunNeeds(command=("deepspeed", "--master_port", "29501", "t.py"))
    assert not port_of(host, other).taken
    assert not port_of(FakeHost(files={"/proc/net/tcp": TALKS}), RunNeeds()).taken


def test_a_port_that_is_only_roots() -> None:
    files = {"/proc/net/tcp": TALKS, "/proc/sys/net/ipv4/ip_unprivileged_port_start": "1024\n"}
    low = RunNeeds(command=("deepspeed", "--master_port", "520", "t.py"))
    high = RunNeeds(command=("deepspeed", "--master_port", "1024", "t.py"))
    mine = FakeHost(files=files)
    assert port_of(mine, low, is_root=False).reserved
    assert not port_of(mine, high, is_root=False).reserved
    assert not port_of(mine, low, is_root=True).reserved
    everyones = files | {"/proc/sys/net/ipv4/ip_unprivileged_port_start": "0\n"}
    assert not port_of(FakeHost(files=everyones), low, is_root=False).reserved


def test_the_port_that_torchrun_serves_its_ranks_is_not_in_their_way() -> None:
    """`dsdoctor.preflight()` in a script: its own launcher listens on the master port."""
    env = {"MASTER_PORT": "29500", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    host = FakeHost(files={"/proc/net/tcp": LISTENS}, env=env)
    with pytest.raises(HostError) as caught:
        port_of(host, RunNeeds())
    assert caught.value.missing.why is Why.NOT_ASKED
    another = RunNeeds(command=("deepspeed", "--master_port", "29500", "t.py"))
    assert port_of(host, another).taken


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("torchrun --standalone t.py", Why.NOT_ASKED),
        ("torchrun --nnodes 2 --node-rank 1 t.py", Why.NOT_ASKED),
    ],
)
def test_ports_that_are_not_this_nodes_to_check(line: str, why: Why) -> None:
    host = FakeHost(files={"/proc/net/tcp": LISTENS})
    with pytest.raises(HostError) as caught:
        port_of(host, RunNeeds(command=tuple(line.split())))
    assert caught.value.missing.why is why


@pytest.mark.parametrize(
    ("reason", "taken"), [(None, True), ("Connection refused", False), ("No route to host", None)]
)
def test_a_port_of_another_node_is_tried(reason: str | None, taken: bool | None) -> None:
    class Other(FakeHost):
        def connect(self, host: str, port: int, timeout: float) -> str | None:
            assert (host, port) == ("10.9.9.9", 29500)
            return reason

    run = RunNeeds(command=("deepspeed", "--master_addr", "10.9.9.9", "t.py"))
    if taken is None:
        with pytest.raises(HostError) as caught:
            port_of(Other(), run)
        assert caught.value.missing.why is Why.UNSUPPORTED
        return
    fact = port_of(Other(), run)
    assert (fact.taken, fact.remote, fact.host) == (taken, True, "10.9.9.9")
