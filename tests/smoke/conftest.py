"""Runs of the real command, and the proof that nothing of them is left."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.ops import compile_ops

SHM = Path("/dev/shm")
#: In the command of a report: the shared memory of its ranks is named after it.
PORT = re.compile(r"master[-_]port\W{1,9}(\d+)")
LIMITED = """
import sys
from dsdoctor.smoke import track
track.DEADLINES.update({limits})
from dsdoctor.__main__ import main
sys.exit(main())
"""


@dataclasses.dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    @property
    def causes(self) -> list[str]:
        return [cause["condition"] for cause in self.report["causes"]]


def marked(token: str) -> list[str]:
    """Command lines of the processes that carry a variable of this test."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if token.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return [line for line in found if line]


class Smoke:
    """Starts `dsdoctor smoke` in a process of its own."""

    def __init__(self, folder: Path, extensions: Path) -> None:
        self.folder, self.token = folder, uuid.uuid4().hex
        self.temporary = folder / "t"
        self.temporary.mkdir()
        beside = str(Path(sys.executable).parent)
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("DSDOCTOR_", "NCCL_"))},
            "SMOKE_TEST": self.token,
            "TMPDIR": str(self.temporary),
            "TORCH_EXTENSIONS_DIR": str(extensions),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
        }
        self.shm = {entry.name for entry in SHM.iterdir()}
        self.ports: set[str] = set()

    def start(
        self, *args: str, limits: Mapping[str, float] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Starts the command; `limits` are seconds for phases, in place of those of the product."""
        if "--timeout" not in args:
            args = (*args, "--timeout", "1200")  # a loaded machine is slow
        command = [sys.executable, "-m", "dsdoctor"]
        if limits is not None:
            command = [sys.executable, "-c", LIMITED.format(limits=dict(limits))]
        return subprocess.Popen(
            [*command, "smoke", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.folder,
            start_new_session=True,
            **options,
        )

    def __call__(self, *args: str, patient: str | None = sys.executable, **options: Any) -> Ended:
        if "--no-bisect" not in args and "--bisect" not in args:
            args = (*args, "--no-bisect")
        if patient is not None:
            args = (*args, "--python", patient)
        begun = time.monotonic()
        child = self.start(*args, "--format", "json", **options)
        try:
            out, err = child.communicate(timeout=1500)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        self.ports |= set(PORT.findall(out))
        return Ended(child.returncode, out, err, time.monotonic() - begun)

    def config(self, *, stage: int = 1, precision: str = "fp32", **extra: Any) -> str:
        zero: dict[str, Any] = {"stage": stage, **extra.pop("zero", {})}
        if stage == 3:
            zero["stage3_param_persistence_threshold"] = 0
        config: dict[str, Any] = {
            "train_micro_batch_size_per_gpu": 2,
            "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}},
            "zero_optimization": zero,
            **extra,
        }
        if precision != "fp32":
            config[precision] = {"enabled": True}
        path = self.folder / "ds_config.json"
        path.write_text(json.dumps(config))
        return str(path)

    def clean(self) -> list[str]:
        """What is left: processes, temporary folders, shared memory."""
        left = marked(self.token)
        left += [entry.name for entry in self.temporary.iterdir()]
        left += [
            entry.name
            for entry in SHM.iterdir()
            if entry.name not in self.shm
            and entry.name.startswith("deepspeed_allreduce")
            # runs of others on this machine have their own
            and any(f"_{port}_" in entry.name for port in self.ports)
        ]
        return left


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled ops, shared by all runs; TORCH_EXTENSIONS_DIR keeps them between sessions."""
    given = os.environ.get("TORCH_EXTENSIONS_DIR")
    folder = Path(given) if given else tmp_path_factory.mktemp("extensions")
    compile_ops({"TORCH_EXTENSIONS_DIR": str(folder)})
    return folder


@pytest.fixture
def smoke(tmp_path: Path, extensions: Path) -> Iterator[Smoke]:
    made = Smoke(tmp_path, extensions)
    yield made
    assert made.clean() == []


Waiter = Callable[[], bool]


def wait_for(seen: Waiter, seconds: float = 500.0) -> None:
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.1)
