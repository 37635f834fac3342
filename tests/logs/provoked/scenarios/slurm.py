"""A real Slurm of one machine: controller, munge and two node daemons on loopback."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from ._bench import RUN, Bench, scenario
from ._scripts import gloo

NEEDS = ("slurmctld", "slurmd", "munged", "srun", "root")
CONF = """\
ClusterName=lab
SlurmctldHost=node-a(127.0.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/ctld.pid
SlurmdPidFile={dir}/%n.pid
SlurmctldLogFile={dir}/ctld.log
SlurmdLogFile={dir}/%n.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=2
OverTimeLimit=0
ReturnToService=1
SchedulerParameters=batch_sched_delay=0,sched_interval=5
GresTypes=gpu
Prolog={dir}/prolog.sh
PrologFlags=Alloc
NodeName=n[1-2] NodeHostname=node-a NodeAddr=127.0.0.1 Port=[17001-17002] CPUs={cpus} RealMemory=1000 Gres=gpu:2
PartitionName=debug Nodes=ALL Default=YES MaxTime=10 State=UP
"""


def _cluster(bench: Bench, prolog: str = "exit 0") -> dict[str, str]:
    """Start the daemons; the environment that srun needs."""
    # Slurm wants an address that is not loopback; a bridge without ports gives one that leads nowhere
    bench.address()
    folder = Path("/opt/slurm")
    for name in ("munge", "state", "spool/n1", "spool/n2"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    for n in (0, 1):
        subprocess.run(["mknod", str(folder / f"gpu{n}"), "c", "1", "3"], check=True)
    (folder / "slurm.conf").write_text(CONF.format(dir=folder, cpus=os.cpu_count()))
    (folder / "gres.conf").write_text(
        f"AutoDetect=off\nNodeName=n[1-2] Name=gpu File={folder}/gpu[0-1]\n"
    )
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    (folder / "prolog.sh").write_text(f"#!/bin/sh\n{prolog}\n")
    (folder / "prolog.sh").chmod(0o755)
    env = {"SLURM_CONF": str(folder / "slurm.conf")}
    munge = [
        "munged",
        "--force",
        f"--key-file={key}",
        f"--socket={folder}/munge/sock",
        f"--pid-file={folder}/munge/pid",
    ]
    bench.run(
        [*munge, f"--log-file={folder}/munge/log", f"--seed-file={folder}/munge/seed"], quiet=True
    )
    bench.run(["slurmctld"], env=env, quiet=True)
    for n in (1, 2):
        bench.run(["slurmd", "-N", f"n{n}"], env=env, quiet=True)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = subprocess.run(
            ["sinfo", "-h", "-t", "idle", "-o", "%D"],
            env={**bench.env, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if found.stdout.strip() == "2":
            break
        time.sleep(0.2)
    return env


@scenario("slurm-request-refused", r"(?i)gres|node configuration is not available", needs=NEEDS)
def slurm_too_many_gpus(bench: Bench) -> int:
    """srun asks for more GPUs per node than any node has."""
    env = _cluster(bench)
    return bench.run(["srun", "--gres=gpu:8", "hostname"], env=env, deadline=20)


@scenario("slurm-request-refused", r"(?i)gres", needs=NEEDS)
def slurm_unknown_gres(bench: Bench) -> int:
    """srun asks for a GPU type that the cluster does not have."""
    env = _cluster(bench)
    return bench.run(["srun", "--gres=gpuu:1", "hostname"], env=env, deadline=20)


@scenario("node-failed", r"(?i)prolog", needs=NEEDS)
def slurm_prolog_failed(bench: Bench) -> int:
    """The node's Prolog found it unfit; srun says only that it failed."""
    env = _cluster(bench, "exit 1")
    return bench.run(["srun", "-N1", "hostname"], env=env, deadline=20)


@scenario("unrecognised", r"(?i)TIME LIMIT|CANCELLED", needs=NEEDS, also_ok=("none",))
def slurm_cancelled(bench: Bench) -> int:
    """The job is cancelled while it trains. (No condition of its own.)"""
    env = _cluster(bench)
    bench.write(
        "train.py",
        "import time\n\nfor step in range(60):\n    print('step', step, flush=True)\n    time.sleep(1)\n",
    )
    job = bench.start(["srun", "-N2", bench.python, "train.py"], env=env)
    time.sleep(5)
    bench.run(["scancel", "--name=python"], env=env)
    try:
        return job.wait(20)
    except subprocess.TimeoutExpired:
        job.kill()
        return 124


@scenario("launched-without-deepspeed", r"environment variable \w+ expected", needs=NEEDS)
def slurm_srun_without_ranks(bench: Bench) -> int:
    """srun starts a torch.distributed script without RANK and MASTER_ADDR."""
    env = _cluster(bench)
    bench.write("train.py", gloo())
    return bench.run(["srun", "-N2", bench.python, "train.py"], env=env, deadline=60)


@scenario("host-oom-killed", r"(?i)Killed", needs=NEEDS, note="kill -9 by hand, told by srun.")
def slurm_task_killed(bench: Bench) -> int:
    """One task of an srun step gets SIGKILL."""
    env = _cluster(bench)
    script = "import os\nimport signal\nimport time\n\nprint('loading', os.environ['SLURM_PROCID'], flush=True)\ntime.sleep(1)\n"
    script += "if os.environ['SLURM_PROCID'] == '1':\n    os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(1)\n"
    bench.write("train.py", script)
    return bench.run(
        ["srun", "-N2", "--kill-on-bad-exit=1", bench.python, "train.py"], env=env, deadline=60
    )


@scenario("none", r"rank 1\] step 2", needs=NEEDS)
def ok_srun_ddp(bench: Bench) -> int:
    """A clean two-node srun of torch DDP."""
    env = _cluster(bench)
    bench.write("train.py", gloo())
    task = f"export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID; exec {bench.python} {RUN}/train.py"
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    return bench.run(["srun", "-N2", "bash", "-c", task], env=env, deadline=60)
