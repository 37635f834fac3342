"""What a scenario is, and the bench it is run on.

A scenario runs as pid 1's child inside namespaces of its own (mounts, network, processes, host name), where

* ``/tmp/run`` is its work folder, ``/home/user`` its home, ``/opt/train`` the patient's environment,
* the only address that answers is loopback, and the machine is called ``node-a``,
* everything it started dies with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RUN = Path("/tmp/run")
HOME = Path("/home/user")
TRAIN = Path("/opt/train")
EXTRA = Path("/opt/extra")
BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Scenario:
    """One failure that can be provoked: how, what it is called, and what proves that it happened."""

    name: str
    label: str
    shows: str  # regular expression the log must match, else the failure did not reproduce
    play: Callable[[Bench], int]
    also_ok: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # commands that must be on PATH, or "root"
    extra: tuple[
        str, ...
    ] = ()  # pinned requirements, each unpacked to /opt/extra/NAME (no dependencies)
    packages: tuple[str, ...] = ()  # others of the patient, whose versions are kept with the log
    warm: bool = True  # share the cache of already built DeepSpeed ops
    simulated: str = ""  # which part of it is not real
    note: str = ""


REGISTRY: dict[str, Scenario] = {}


def scenario(  # noqa: PLR0913
    label: str,
    shows: str,
    *,
    also_ok: Sequence[str] = (),
    needs: Sequence[str] = (),
    extra: Sequence[str] = (),
    packages: Sequence[str] = (),
    warm: bool = True,
    simulated: str = "",
    note: str = "",
) -> Callable[[Callable[[Bench], int]], Callable[[Bench], int]]:
    """Register the decorated function under its own name."""

    def register(play: Callable[[Bench], int]) -> Callable[[Bench], int]:
        name = play.__name__
        if name in REGISTRY:
            message = f"two scenarios are called {name}"
            raise ValueError(message)
        REGISTRY[name] = Scenario(
            name,
            label,
            shows,
            play,
            tuple(also_ok),
            tuple(needs),
            tuple(extra),
            tuple(packages),
            warm,
            simulated,
            note or (play.__doc__ or "").strip(),
        )
        return play

    return register


class Bench:
    """Hands of a scenario: write files, run commands with a deadline, keep all they print."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.python = str(TRAIN / "bin/python")
        self.env: dict[str, str] = {
            "PATH": f"{TRAIN}/bin:{BASE_PATH}",
            "HOME": str(HOME),
            "USER": "user",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "MAX_JOBS": "2",
        }

    def write(self, name: str, text: str, *, mode: int = 0o644) -> Path:
        """Put a file into the work folder."""
        path = RUN / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path = RUN,
        quiet: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start a command whose output goes to the log (or nowhere)."""
        target = Path(os.devnull) if quiet else self.log
        with target.open("ab") as out:
            return subprocess.Popen(
                list(argv),
                env={**self.env, **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def run(  # noqa: PLR0913
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path = RUN,
        deadline: float = 120,
        end: signal.Signals = signal.SIGKILL,
        quiet: bool = False,
    ) -> int:
        """Run a command; past the deadline its group gets ``end`` (124 is returned for a kill)."""
        child = self.start(argv, env=env, cwd=cwd, quiet=quiet)
        try:
            return child.wait(deadline)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, end)
        if end == signal.SIGKILL:
            child.wait()
            return 124
        try:
            return child.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return child.wait()

    def py(
        self, script: str, *args: str, env: Mapping[str, str] | None = None, deadline: float = 120
    ) -> int:
        """Run a script's text as ``train.py`` with the patient's python."""
        self.write("train.py", script)
        return self.run([self.python, "train.py", *args], env=env, deadline=deadline)

    def deepspeed(  # noqa: PLR0913
        self,
        script: str,
        *args: str,
        ranks: int = 2,
        launch: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        deadline: float = 120,
        end: signal.Signals = signal.SIGKILL,
    ) -> int:
        """Run a script's text as ``train.py`` under the DeepSpeed launcher."""
        self.write("train.py", script)
        count = ["--num_accelerators", str(ranks)] if ranks else []
        argv = [self.python, str(TRAIN / "bin/deepspeed"), *count, *launch, "train.py", *args]
        return self.run(argv, env=env, deadline=deadline, end=end)

    def torchrun(
        self,
        script: str,
        *args: str,
        ranks: int = 2,
        launch: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        deadline: float = 120,
    ) -> int:
        """Run a script's text as ``train.py`` under torchrun."""
        self.write("train.py", script)
        argv = [
            self.python,
            "-m",
            "torch.distributed.run",
            f"--nproc-per-node={ranks}",
            *launch,
            "train.py",
            *args,
        ]
        return self.run(argv, env=env, deadline=deadline)

    def mount(self, *args: str) -> None:
        """Mount something, in this scenario's own mount namespace only."""
        subprocess.run(["mount", *args], check=True)

    def address(self, *names: str) -> None:
        """Give this machine (node-a) and further host names an address each that is not loopback and leads nowhere."""
        commands = ["link add eth0 type bridge", "link set eth0 up"]
        commands += [f"addr add 10.99.0.{n}/24 dev eth0" for n in range(10, 11 + len(names))]
        for words in commands:
            subprocess.run(["ip", *words.split()], check=True)
        lines = [
            "127.0.0.1 localhost",
            "10.99.0.10 node-a",
            *(f"10.99.0.{n} {name}" for n, name in enumerate(names, 11)),
        ]
        Path("/etc/hosts").write_text("\n".join(lines) + "\n")

    def mask(self, path: Path) -> None:
        """Make a file or folder look absent (a file: renamed away by an overlay; a folder: emptied)."""
        parent = path.parent
        scratch = HOME.parent / ".mask" / str(parent).strip("/").replace("/", "_")
        upper, work = scratch / "upper", scratch / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        self.mount(
            "-t",
            "overlay",
            "overlay",
            "-o",
            f"lowerdir={parent},upperdir={upper},workdir={work}",
            str(parent),
        )
        if path.is_dir() and not path.is_symlink():
            subprocess.run(["rm", "-rf", str(path)], check=True)
        else:
            path.unlink()

    def bin_without(self, *names: str) -> str:
        """A PATH of one folder that links every usual command except the given ones."""
        folder = HOME / "bin"
        folder.mkdir()
        for source in (TRAIN / "bin", Path("/usr/local/bin"), Path("/usr/bin"), Path("/usr/sbin")):
            for entry in source.iterdir():
                link = folder / entry.name
                if entry.name not in names and not link.is_symlink():
                    link.symlink_to(entry)
        return str(folder)

    def listen(self, port: int) -> subprocess.Popen[bytes]:
        """Occupy a port, as a job left over from yesterday does."""
        code = f"import socket,time;s=socket.create_server(('0.0.0.0',{port}));time.sleep(600)"
        child = self.start([self.python, "-c", code], quiet=True)
        time.sleep(0.5)
        return child
