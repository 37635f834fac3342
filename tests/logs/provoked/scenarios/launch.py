"""Launchers: ports, hostfiles, ranks, environments, names of modules."""

from __future__ import annotations

from ._bench import EXTRA, RUN, TRAIN, Bench, scenario
from ._scripts import config, gloo, train

HOSTS = "hostfile-or-ssh-problem"
PLAIN = "launched-without-deepspeed"
MEET = "rendezvous-timeout"
ARGS = ("--deepspeed", "--deepspeed_config", "ds_config.json")


@scenario("port-in-use", r"EADDRINUSE")
def launch_port_in_use(bench: Bench) -> int:
    """Port 29500 is held by another process; DeepSpeed launcher."""
    bench.listen(29500)
    bench.write("ds_config.json", config())
    return bench.deepspeed(train(), *ARGS)


@scenario("port-in-use", r"EADDRINUSE|[Aa]ddress already in use")
def launch_port_in_use_torchrun(bench: Bench) -> int:
    """Port 29500 is held by another process; torchrun."""
    bench.listen(29500)
    return bench.torchrun(gloo(), launch=["--master-port=29500"])


def _hostfile(bench: Bench, text: str, *launch: str) -> int:
    bench.write("hostfile", text)
    bench.write("ds_config.json", config())
    return bench.deepspeed(
        train(), *ARGS, ranks=0, launch=["--hostfile", "hostfile", *launch], deadline=40
    )


@scenario(HOSTS, r"(?i)hostfile")
def launch_hostfile_bad_entry(bench: Bench) -> int:
    """A hostfile line that is no entry."""
    return _hostfile(bench, "node-a slots=2\nnode-b 8 gpus\n")


@scenario(HOSTS, r"(?i)hostfile|multiple entries")
def launch_hostfile_duplicate(bench: Bench) -> int:
    """The same host twice."""
    return _hostfile(bench, "node-a slots=2\nnode-a slots=2\n")


@scenario(HOSTS, r"(?i)hostfile|empty")
def launch_hostfile_empty(bench: Bench) -> int:
    """An empty hostfile."""
    return _hostfile(bench, "\n# nodes come here\n")


@scenario(HOSTS, r"(?i)hostfile")
def launch_hostfile_slots_word(bench: Bench) -> int:
    """slots=two."""
    return _hostfile(bench, "node-a slots=two\n")


@scenario(HOSTS, r"(?i)hostfile|hostname|ssh")
def launch_hostfile_with_port(bench: Bench) -> int:
    """A host:port entry."""
    return _hostfile(bench, "node-a:22 slots=2\nnode-b:22 slots=2\n")


@scenario(
    HOSTS,
    r"(?i)No slot|slot",
    also_ok=("launcher-visible-devices-conflict", "invalid-device-ordinal"),
)
def launch_include_slot_absent(bench: Bench) -> int:
    """--include asks for a slot that the host does not have."""
    return _hostfile(bench, "node-a slots=2\n", "--include", "node-a:0,5")


@scenario(HOSTS, r"(?i)not found|node-z")
def launch_include_host_absent(bench: Bench) -> int:
    """--include names a host that the hostfile lacks."""
    return _hostfile(bench, "node-a slots=2\n", "--include", "node-z:0")


@scenario("include-exclude-conflict", r"(?i)mutually exclusive")
def launch_include_and_exclude(bench: Bench) -> int:
    """--include together with --exclude."""
    return _hostfile(bench, "node-a slots=2\n", "--include", "node-a:0", "--exclude", "node-a:1")


@scenario(PLAIN, r"No module named 'mpi4py'", also_ok=("mpi-missing",))
def launch_plain_python(bench: Bench) -> int:
    """Started with plain python: DeepSpeed tries MPI discovery, mpi4py is absent."""
    bench.write("ds_config.json", config())
    return bench.py(train(), *ARGS)


@scenario("mpi-missing", r"(?i)libmpi|cannot load MPI", also_ok=(PLAIN,), extra=("mpi4py==4.1.2",))
def launch_plain_python_mpi4py_without_mpi(bench: Bench) -> int:
    """Started with plain python: mpi4py is there, an MPI library is not."""
    bench.write("ds_config.json", config())
    return bench.py(train(), *ARGS, env={"PYTHONPATH": str(EXTRA / "mpi4py-4.1.2")})


@scenario(PLAIN, r"environment variable RANK expected, but not set")
def launch_plain_python_torch(bench: Bench) -> int:
    """A torch.distributed script started with plain python."""
    return bench.py(gloo())


@scenario(
    PLAIN, r"environment variable MASTER_ADDR expected|environment variable WORLD_SIZE expected"
)
def launch_half_environment(bench: Bench) -> int:
    """RANK is set by hand, the other variables are not."""
    return bench.py(gloo(), env={"RANK": "0"})


@scenario(MEET, r"(?i)timed out|timeout")
def launch_second_node_absent(bench: Bench) -> int:
    """torchrun for two nodes, of which the second never comes."""
    launch = ["--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", "--rdzv-conf=timeout=8"]
    launch = [
        "--nnodes=2",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:29400",
        "--rdzv-id=job",
        "--rdzv-conf=join_timeout=8,timeout=8",
    ]
    return bench.torchrun(gloo(), launch=launch, deadline=60)


@scenario(MEET, r"(?i)timed out|clients joined|timeout")
def launch_world_size_too_large(bench: Bench) -> int:
    """WORLD_SIZE says 2, one process was started."""
    env = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }
    return bench.py(gloo(), env=env, deadline=60)


@scenario(MEET, r"(?i)retrieved|resolve|Name or service")
def launch_master_not_resolvable(bench: Bench) -> int:
    """MASTER_ADDR is a name that no one resolves."""
    env = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "node-b.cluster",
        "MASTER_PORT": "29500",
    }
    return bench.py(gloo(), env=env, deadline=60)


@scenario(MEET, r"(?i)timed out|refused")
def launch_master_refuses(bench: Bench) -> int:
    """No one listens at MASTER_ADDR:MASTER_PORT (rank 0 has not started)."""
    env = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29511",
    }
    return bench.py(gloo(), env=env, deadline=60)


@scenario(MEET, r"(?i)unreachable|timed out|refused")
def launch_master_unreachable(bench: Bench) -> int:
    """MASTER_ADDR is in a network that this node has no route to."""
    env = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29500",
    }
    return bench.py(gloo(), env=env, deadline=60)


@scenario(MEET, r"(?i)rendezvous|timed out|refused|Connection")
def launch_rdzv_endpoint_refuses(bench: Bench) -> int:
    """torchrun is pointed at a rendezvous endpoint where no one listens."""
    launch = [
        "--nnodes=2",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=node-b:29400",
        "--rdzv-conf=timeout=6,read_timeout=6",
    ]
    return bench.torchrun(gloo(), launch=launch, deadline=60)


@scenario("deepspeed-missing", r"No module named 'deepspeed'")
def launch_deepspeed_missing(bench: Bench) -> int:
    """The script runs in an environment without DeepSpeed."""
    bench.run([bench.python, "-m", "venv", "--without-pip", "/tmp/run/env"], quiet=True)
    (RUN / "env/lib/python3.11/site-packages/torch").symlink_to(
        TRAIN / "lib/python3.11/site-packages/torch"
    )
    bench.write("train.py", "import deepspeed\n\nprint(deepspeed.__version__)\n")
    return bench.run(["/tmp/run/env/bin/python", "train.py"])


@scenario("deepspeed-missing", r"deepspeed: (command )?not found")
def launch_deepspeed_command_missing(bench: Bench) -> int:
    """The environment was not activated: no deepspeed command."""
    job = bench.write(
        "job.sh",
        "#!/bin/bash\ndeepspeed --num_gpus 2 train.py --deepspeed ds_config.json\n",
        mode=0o755,
    )
    return bench.run([str(job)], env={"PATH": "/usr/bin:/bin"})


@scenario(
    "deepspeed-missing",
    r"has no attribute 'initialize'|partially initialized",
    also_ok=("user-code",),
)
def launch_deepspeed_shadowed(bench: Bench) -> int:
    """The user called the script deepspeed.py."""
    bench.write(
        "deepspeed.py", "import deepspeed\n\nengine, *_ = deepspeed.initialize(model=None)\n"
    )
    return bench.run([bench.python, "deepspeed.py"])


@scenario("user-code", r"(?i)torch", also_ok=("torch-import-broken",))
def launch_torch_shadowed(bench: Bench) -> int:
    """A file torch.py lies beside the script."""
    bench.write("torch.py", "# notes about torch\n")
    return bench.py("import torch\n\nprint(torch.zeros(2))\n")


@scenario(
    "launched-without-deepspeed", r"(?i)local_rank|LOCAL_RANK|KeyError", also_ok=("user-code",)
)
def launch_local_rank_keyerror(bench: Bench) -> int:
    """A script for launchers reads LOCAL_RANK and is started with plain python."""
    return bench.py("import os\n\nlocal_rank = int(os.environ['LOCAL_RANK'])\nprint(local_rank)\n")


@scenario("nccl-ib-or-socket-interface", r"(?i)eth7|interface")
def launch_gloo_interface_absent(bench: Bench) -> int:
    """GLOO_SOCKET_IFNAME names an interface that this node does not have."""
    return bench.torchrun(gloo(), env={"GLOO_SOCKET_IFNAME": "eth7"})


@scenario("cpu-only-torch", r"(?i)NCCL")
def launch_nccl_backend_on_cpu_torch(bench: Bench) -> int:
    """The NCCL back end is asked of a CPU build of torch."""
    return bench.torchrun(gloo().replace('"gloo"', '"nccl"'))
