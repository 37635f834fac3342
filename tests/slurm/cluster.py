"""A real Slurm on this machine: munged, slurmctld and two slurmd, without systemd.

Everything lives in one folder, chosen by SLURM_CONF. The two nodes are one machine, so each gets
scripts, run folder and fake NVML of its own, told apart by SLURMD_NODENAME.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.nvml import fakenvml
from tests.support.needs import linux_root_with

NODES = ("n1", "n2")
PROGRAMS = ("slurmctld", "slurmd", "munged", "scontrol", "sinfo", "srun", "sbatch")
#: Of a module whose tests need it.
MARKS = linux_root_with("Slurm", PROGRAMS)


_CONF = """\
ClusterName=dsdtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={d}/munge/sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd-%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd-%n.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=1
SlurmdTimeout=60
SchedulerParameters=batch_sched_delay=0,sched_interval=2{scheduler}
GresTypes=gpu
Prolog={d}/prolog.sh
{epilog}
TaskProlog={d}/task-prolog.sh
{prolog}
{health}
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus} \
RealMemory=500 Gres=gpu:fake:2 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
#: What `hook install` advises besides the scripts themselves.
_PROLOG = """\
PrologFlags=Alloc
PrologEpilogTimeout=30
"""
_HEALTH = """\
HealthCheckProgram={d}/health.sh
HealthCheckInterval=3
HealthCheckNodeState=ANY
"""


class Cluster:
    """A running cluster.

    Attributes:
        folder: of everything.
        env: environment for Slurm's commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # three ports each: processes that test at once have neighboring numbers
        self.port = 16000 + 3 * (os.getpid() % 4000)
        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
        self.env = {"PATH": path, "HOME": str(folder), "SLURM_CONF": str(folder / "slurm.conf")}
        self.health_on = False
        self.nohold = False
        self.advised = True
        self.epilog_on = False

    # ---- the daemons

    def start(self) -> None:
        for name in ("munge", "state", "log", "run", "spool/n1", "spool/n2", "n1", "n2"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("", "munge"):
            (self.folder / name).chmod(0o755)
        key = self.folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        for number in (0, 1):
            os.mknod(self.folder / f"gpu{number}", 0o20666, os.makedev(1, 3))
        (self.folder / "gres.conf").write_text(
            f"AutoDetect=off\nNodeName=n[1-2] Name=gpu Type=fake File={self.folder}/gpu[0-1]\n"
        )
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        for name in ("prolog", "task-prolog", "health", "epilog"):
            script = self.folder / f"{name}.sh"
            script.write_text(
                "#!/bin/sh\n"
                f". {self.folder}/$SLURMD_NODENAME/env\n"
                f"exec {self.folder}/$SLURMD_NODENAME/{name}.sh\n"
            )
            script.chmod(0o755)
        self.configure(reload=False)
        munge = self.folder / "munge"
        self.run(
            "munged",
            "--force",
            f"--key-file={munge}/key",
            f"--socket={munge}/sock",
            f"--pid-file={munge}/pid",
            f"--log-file={munge}/log",
            f"--seed-file={munge}/seed",
        )
        self.run("slurmctld")
        for node in NODES:
            self.run("slurmd", "-N", node)
        self.wait(lambda: self.idle() == 2, "both nodes idle")

    def configure(self, *, reload: bool = True) -> None:
        text = _CONF.format(
            d=self.folder,
            host=socket.gethostname().split(".")[0],
            port=self.port,
            first=self.port + 1,
            last=self.port + 2,
            cpus=os.cpu_count(),
            scheduler=",nohold_on_prolog_fail" if self.nohold else "",
            health=_HEALTH.format(d=self.folder) if self.health_on else "",
            prolog=_PROLOG if self.advised else "",
            epilog=f"Epilog={self.folder}/epilog.sh" if self.epilog_on else "",
        )
        (self.folder / "slurm.conf").write_text(text)
        if reload:
            self.run("scontrol", "reconfigure")
            self.wait(self._configured, "slurmctld has read slurm.conf")

    def _configured(self) -> bool:
        text = self.run("scontrol", "show", "config")
        nohold, health = "nohold_on_prolog_fail" in text, "health.sh" in text
        advised = re.search(r"^PrologFlags\s*=.*Alloc", text, re.MULTILINE) is not None
        epilog = re.search(r"^Epilog(?:\[0\])?\s*=.*epilog.sh", text, re.MULTILINE) is not None
        found = (nohold, health, advised, epilog)
        return found == (self.nohold, self.health_on, self.advised, self.epilog_on)

    def stop(self) -> None:
        files = [self.folder / "run" / f"slurmd-{node}.pid" for node in NODES]
        files += [self.folder / "run" / "slurmctld.pid", self.folder / "munge" / "pid"]
        pids = []
        for file in files:
            with contextlib.suppress(OSError, ValueError):
                pids.append(int(file.read_text()))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # ---- the nodes

    def install(self, *options: str, run_folder: Path | None = None, target: str = "slurm") -> None:
        """`dsdoctor hook install` for both nodes."""
        for node in NODES:
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "dsdoctor",
                    "hook",
                    "install",
                    target,
                    "--into",
                    str(self.folder / node),
                    "--budget",
                    "20",  # a loaded machine is slow; what is tested is no speed
                    "--run-folder",
                    str(run_folder or self.folder / node / "run"),
                    *options,
                ],
                env={**self.env, "HOME": str(self.folder)},
                check=True,
                capture_output=True,
                timeout=300,
            )

    def delete_dsdoctor(self, *nodes: str) -> None:
        """The interpreter that the scripts name is gone, as after a deleted environment."""
        for node in nodes or NODES:
            for script in (self.folder / node).glob("*.sh"):
                text = re.sub(r"(?m)^python=.*$", "python=/nowhere/bin/python", script.read_text())
                script.write_text(text)

    def status(self, node: str) -> list[dict[str, Any]]:
        """`dsdoctor hook status` of a node."""
        argv = ("-m", "dsdoctor", "hook", "status", "--format", "json", "--run-folder")
        out = self.run(sys.executable, *argv, str(self.folder / node / "run"))
        rows: list[dict[str, Any]] = json.loads(out)["runs"]
        return rows

    def machine(self, node: str, scenario: Any, **more: str) -> None:
        """What the node's NVML says from now on."""
        place = self.folder / node
        config = place / "config.toml"
        if "DSDOCTOR_CONFIG" not in more:
            config.write_text("[hook]\nmax_age = 0\n")
        env = fakenvml.environment(scenario, place)
        env = {"DSDOCTOR_CONFIG": str(config), **env, **more}
        text = "".join(f"{name}='{value}'; export {name}\n" for name, value in env.items())
        (place / "env").write_text(text)

    def state(self, node: str) -> tuple[str, str]:
        """State and reason."""
        line = self.run("scontrol", "show", "node", node, "--oneliner")
        state = line.split(" State=")[1].split()[0]
        reason = line.split(" Reason=")[1].split(" [")[0].strip() if " Reason=" in line else ""
        return state, reason

    def idle(self) -> int:
        return sum(int(word) for word in self.run("sinfo", "-h", "-t", "idle", "-o", "%D").split())

    def resume(self) -> None:
        """Every node back to idle, no job left."""
        self.run("scancel", "--user=root")
        for node in NODES:
            if "DRAIN" in self.state(node)[0] or "DOWN" in self.state(node)[0]:
                self.run("scontrol", "update", f"nodename={node}", "state=resume")
        self.wait(lambda: self.idle() == 2, "both nodes idle")

    def log(self, node: str) -> str:
        return (self.folder / "log" / f"slurmd-{node}.log").read_text(errors="replace")

    # ---- commands

    def run(self, *argv: str) -> str:
        done = self.try_run(*argv)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout

    def try_run(
        self, *argv: str, env: Mapping[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(argv),
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
        )

    def srun(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.try_run("srun", *argv, env=env)

    def submit(self, *options: str, command: str = "hostname") -> str:
        out = self.run(
            "sbatch",
            "--parsable",
            f"--output={self.folder}/job-%j.out",
            "--requeue",
            *options,
            f"--wrap={command}",
        )
        return out.strip().split(";")[0]

    def job(self, job: str) -> dict[str, str]:
        out = self.run("scontrol", "show", "job", job, "--oneliner")
        return dict(word.split("=", 1) for word in out.split() if "=" in word)

    def wait(self, condition: Any, what: str, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.1)
        states = {node: self.state(node) for node in NODES}
        raise AssertionError(f"{what}: not within {seconds} s; {states}")
