"""torch and DeepSpeed started by the real child: fakes of every temper, then the real ones."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.host import LocalHost
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.python import DeepSpeedLive, PatientChoice, TorchLive
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes import torch_live
from dsdoctor.probes.torch_live import _tail, parse_live, start_torch, torch_facts
from dsdoctor.process import Result

#: A torch for two GPUs of which the second has no memory left; MODE changes its mind.
CUDA_TORCH = """
import os
__version__ = "2.9.1+cu128"
MODE = os.environ.get("MODE", "")
assert os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] == "0"

class version:
    cuda, hip = "12.8", None

class _C:
    _GLIBCXX_USE_CXX11_ABI = True
    @staticmethod
    def _cuda_getArchFlags():
        return "" if MODE == "no-flags" else "sm_80 sm_90 compute_90"

class Properties:
    name, major, minor, total_memory = "NVIDIA H200", 9, 0, 150 << 30
    uuid = None

class cuda:
    class nccl:
        @staticmethod
        def version():
            return (2, 27, 5)
    class device:
        def __init__(self, index):
            assert index == 0 or MODE != ""
        def __enter__(self):
            pass
        def __exit__(self, *rest):
            pass
    @staticmethod
    def get_arch_list():
        return []
    @staticmethod
    def init():
        if MODE == "no-driver":
            raise RuntimeError("Unexpected error from cudaGetDeviceCount(). Error 804: forward")
        if MODE == "abort-in-init":
            os.abort()
    @staticmethod
    def device_count():
        return 2
    @staticmethod
    def get_device_properties(index):
        p = Properties()
        p.uuid = "aaaa-%d" % index
        return p
    @staticmethod
    def synchronize(index):
        pass
    @staticmethod
    def is_bf16_supported():
        return True

class Refused(RuntimeError):
    error_code = 2

def empty(size, device):
    if device == "cuda:1":
        if MODE == "hang-in-context":
            import time
            time.sleep(60)
        raise Refused("CUDA error: out of memory")
"""
CPU_TORCH = """
__version__ = "2.9.1+cpu"
class version:
    cuda = hip = None
"""
DEEPSPEED = """
print("noise on stdout", flush=True)
"""
ACCELERATOR = """
class A:
    _name = "cuda"
def get_accelerator():
    return A()
"""


def job(tmp_path: Path, torch: str | None, deepspeed: str | None = None) -> dict[str, str]:
    """PYTHONPATH with these packages before all others."""
    for name, text in (("torch", torch), ("deepspeed", deepspeed)):
        if text is not None:
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text(text, encoding="utf-8")
    if deepspeed is not None:
        (tmp_path / "deepspeed/accelerator.py").write_text(ACCELERATOR, encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path)}


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """An interpreter without packages."""
    home = Path(getattr(sys, "_base_executable", sys.executable))
    prefix = tmp_path / "env"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python").symlink_to(home)
    config = f"home = {home.parent}\ninclude-system-site-packages = false\n"
    (prefix / "pyvenv.cfg").write_text(config, encoding="utf-8")
    return str(prefix / "bin/python")


def start(
    python: str, env: dict[str, str], step_seconds: float = 20.0, **needs: Any
) -> tuple[TorchLive | Missing, DeepSpeedLive | Missing]:
    choice = PatientChoice(executable=python, chosen_by="--python")
    host = LocalHost({**os.environ, **env})
    return start_torch(host, choice, RunNeeds(**needs), step_seconds)


def live(
    python: str, env: dict[str, str], step_seconds: float = 20.0, **needs: Any
) -> tuple[TorchLive, DeepSpeedLive | Missing]:
    torch, deepspeed = start(python, env, step_seconds, **needs)
    assert isinstance(torch, TorchLive), torch
    return torch, deepspeed


def test_quick_starts_nothing() -> None:
    for fact in start("/nowhere/python", {}, quick=True):
        assert fact == Missing(why=Why.NOT_ASKED, detail="torch not started (`--quick`)")


def test_no_torch(bare: str) -> None:
    torch, deepspeed = start(bare, {})
    assert torch == Missing(why=Why.ABSENT, detail="`torch` is not installed")
    assert isinstance(deepspeed, Missing)
    assert deepspeed.why is Why.ABSENT


@pytest.mark.parametrize(
    ("body", "error_type", "message"),
    [
        ("raise ImportError('libcudart.so.12: cannot open')", "ImportError", "libcudart.so.12"),
        ("raise OSError('libcublas.so.12: no such file \\u00e9')", "OSError", "no such file é"),
        ("import nowhere_to_be_found", "ModuleNotFoundError", "nowhere_to_be_found"),
        ("raise SystemExit(3)", "SystemExit", "3"),
        ("1/0", "ZeroDivisionError", "division by zero"),
    ],
)
def test_an_import_that_raises(
    bare: str, tmp_path: Path, body: str, error_type: str, message: str
) -> None:
    torch, deepspeed = live(bare, job(tmp_path, body))
    assert not torch.imported.ok
    assert torch.imported.error_type == error_type
    assert message in str(torch.imported.message)
    assert error_type in torch.imported.traceback
    assert "__init__.py" in torch.imported.traceback
    assert torch.last_step == "import torch"
    assert torch.died is None
    assert torch.cuda_ok is None
    assert isinstance(deepspeed, Missing)
    assert deepspeed.why is Why.NOT_ASKED


def test_an_import_that_aborts(bare: str, tmp_path: Path) -> None:
    torch, deepspeed = live(bare, job(tmp_path, "import os; os.abort()"))
    assert torch.imported.error_type == "signal"
    assert torch.imported.signal == 6
    assert torch.imported.message == "SIGABRT"
    assert "__init__.py" in torch.imported.traceback  # faulthandler named the place
    assert torch.died == "signal 6 (SIGABRT)"
    assert torch.last_step == "import torch"
    assert isinstance(deepspeed, Missing)


def test_of_a_dump_of_python_3_14_the_python_frames_are_kept() -> None:
    python = ["Fatal Python error: Aborted", "", "Current thread 0x7f (most recent call first):"]
    python += ['  File "/e/torch/__init__.py", line 1 in <module>', ""]
    native = ["Current thread's C stack trace (most recent call first):"]
    native += [f'  Binary file "/e/bin/python" [0x{number:x}]' for number in range(30)]
    found = _tail("\n".join([*python, *native]).encode())
    assert found.splitlines() == python[:-1]


def test_an_import_that_hangs_tells_where(bare: str, tmp_path: Path) -> None:
    torch, _ = live(bare, job(tmp_path, "import time\ntime.sleep(600)"), 1.5)
    assert torch.imported.error_type == "hang"
    assert re.fullmatch(r"`import torch` had not ended after \d+ s", str(torch.imported.message))
    assert re.fullmatch(r"hung for \d+ s", str(torch.died))
    assert "line 2" in torch.imported.traceback


def test_a_child_that_cannot_end_itself_is_ended(
    bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_live, "GRACE_SECONDS", 0.2)
    stop = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    torch, _ = live(bare, job(tmp_path, stop), 1.0)
    assert torch.imported.error_type == "hang"
    assert torch.last_step == "import torch"


def test_an_import_that_exits(bare: str, tmp_path: Path) -> None:
    torch, _ = live(bare, job(tmp_path, "import os; os._exit(7)"))
    assert torch.imported.error_type == "exit"
    assert torch.died == "exit status 7"


def test_a_healthy_cpu_build(bare: str, tmp_path: Path) -> None:
    torch, deepspeed = live(bare, job(tmp_path, CPU_TORCH, DEEPSPEED))
    assert torch.imported.ok
    assert torch.version == "2.9.1+cpu"
    assert torch.file == str(tmp_path / "torch/__init__.py")
    assert (torch.cuda_ok, torch.arch_list, torch.devices) == (None, None, ())
    assert isinstance(deepspeed, DeepSpeedLive)
    assert deepspeed.imported.ok
    assert deepspeed.accelerator == "cuda"
    assert torch.last_step == "accelerator"


def test_gpus_one_of_which_has_no_memory(bare: str, tmp_path: Path) -> None:
    torch, deepspeed = live(bare, job(tmp_path, CUDA_TORCH))
    assert torch.cuda_ok is True
    assert torch.arch_list == ("sm_80", "sm_90", "compute_90")
    assert torch.arch_source == "_cuda_getArchFlags"
    assert torch.nccl == "2.27.5"
    assert torch.cxx11_abi is True
    assert torch.bf16_emulated is True
    first, second = torch.devices
    assert (first.ok, first.tried, first.uuid) == (True, True, "GPU-aaaa-0")
    assert (second.ok, second.error_code) == (False, 2)
    assert second.error == "CUDA error: out of memory"
    assert torch.died is None
    assert deepspeed == Missing(why=Why.ABSENT, detail="`deepspeed` is not installed")


@pytest.mark.parametrize("gpus", [("0",), ("GPU-aaaa-0",), ("GPU-aaaa-0", "0")])
def test_only_chosen_gpus_are_tried(bare: str, tmp_path: Path, gpus: tuple[str, ...]) -> None:
    torch, _ = live(bare, job(tmp_path, CUDA_TORCH), gpus=gpus)
    assert [device.tried for device in torch.devices] == [True, False]
    assert [device.ok for device in torch.devices] == [True, True]


def test_indices_count_what_the_user_left_visible(bare: str, tmp_path: Path) -> None:
    env = {**job(tmp_path, CUDA_TORCH), "CUDA_VISIBLE_DEVICES": "5,3"}
    torch, _ = live(bare, env, gpus=("5",))
    assert [device.tried for device in torch.devices] == [True, False]


def test_indices_are_those_of_nvidia_smi(bare: str, tmp_path: Path) -> None:
    order = "import os\nassert os.environ.get('CUDA_DEVICE_ORDER') == 'PCI_BUS_ID'\n"
    env = {**job(tmp_path, order + CPU_TORCH), "CUDA_DEVICE_ORDER": ""}
    assert live(bare, env, gpus=("1",))[0].imported.ok
    assert not live(bare, env, gpus=("GPU-aaaa-0",))[0].imported.ok
    assert not live(bare, env)[0].imported.ok


def test_an_arch_list_that_is_empty_is_unknown(bare: str, tmp_path: Path) -> None:
    torch, _ = live(bare, {**job(tmp_path, CUDA_TORCH), "MODE": "no-flags"})
    assert torch.arch_list is None
    assert torch.arch_source is None


def test_cuda_that_does_not_start(bare: str, tmp_path: Path) -> None:
    torch, deepspeed = live(bare, {**job(tmp_path, CUDA_TORCH, DEEPSPEED), "MODE": "no-driver"})
    assert torch.cuda_ok is False
    assert torch.cuda_error_code == 804
    assert "forward" in str(torch.cuda_error)
    assert torch.devices == ()
    assert isinstance(deepspeed, DeepSpeedLive)


def test_cuda_that_aborts(bare: str, tmp_path: Path) -> None:
    env = {**job(tmp_path, CUDA_TORCH, DEEPSPEED), "MODE": "abort-in-init"}
    torch, deepspeed = live(bare, env)
    assert torch.imported.ok
    assert torch.cuda_ok is None
    assert torch.died == "signal 6 (SIGABRT)"
    assert torch.last_step == "cuda init"
    assert torch.arch_list is not None
    assert isinstance(deepspeed, Missing)
    assert "`cuda init`" in deepspeed.detail


def test_a_context_that_hangs_keeps_what_was_known(bare: str, tmp_path: Path) -> None:
    env = {**job(tmp_path, CUDA_TORCH), "MODE": "hang-in-context"}
    torch, _ = live(bare, env, 1.5)
    assert torch.imported.ok
    assert torch.cuda_ok is True
    assert torch.last_step == "cuda device 1 context"
    assert re.fullmatch(r"hung for \d+ s", str(torch.died))
    assert [device.ok for device in torch.devices] == [True, True]
    assert [device.tried for device in torch.devices] == [True, False]


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ("raise AttributeError('module torch has no attribute x')", "AttributeError"),
        ("import os; os.abort()", "signal"),
        ("import time; time.sleep(600)", "hang"),
    ],
)
def test_a_deepspeed_that_does_not_import(
    bare: str, tmp_path: Path, body: str, error_type: str
) -> None:
    torch, deepspeed = live(bare, job(tmp_path, CPU_TORCH, body), 2.0)
    assert torch.imported.ok
    assert torch.died is None  # that was not torch
    assert isinstance(deepspeed, DeepSpeedLive)
    assert not deepspeed.imported.ok
    assert deepspeed.imported.error_type == error_type


def test_a_file_of_the_job_shadows_as_it_would_in_the_job(bare: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("json", "traceback", "re", "typing"):
        (folder / f"{name}.py").write_text("x = 1\n", encoding="utf-8")
    body = "import json\njson.loads('1')"
    torch, _ = live(bare, job(tmp_path, body), cwd=str(folder))
    assert torch.imported.error_type == "AttributeError"
    assert "line 2" in torch.imported.traceback
    (folder / "torch.py").write_text("x = 1\n", encoding="utf-8")
    torch, _ = live(bare, {}, cwd=str(folder))
    assert torch.imported.ok
    assert torch.file == str(folder / "torch.py")


def test_a_job_sees_no_arguments_of_ours(bare: str, tmp_path: Path) -> None:
    torch, _ = live(bare, job(tmp_path, "import sys\nassert sys.argv[1:] == [], sys.argv"))
    assert torch.imported.ok


def test_an_interpreter_that_does_not_start(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'Fatal Python error: init' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(0o755)
    for fact in start(str(fake), {}):
        assert isinstance(fact, Missing)
        assert fact.why is Why.BROKEN
        assert "Fatal Python error" in fact.detail
    for fact in start("/nowhere/python", {}):
        assert isinstance(fact, Missing)
        assert fact.why is Why.ABSENT


def test_a_device_whose_properties_fail_is_named() -> None:
    records: list[dict[str, Any]] = [
        {"step": "import torch", "at": 0.0},
        {"fact": "torch_import", "value": {"ok": True, "seconds": 1.0}},
        {"fact": "cuda", "value": {"ok": True, "count": 1}},
        {"fact": "device_tried", "value": {"index": 0, "ok": False, "error": "CUDA error 999"}},
        {"done": True},
    ]
    torch, _ = parse_live(records, Result(argv=("py",), returncode=0))
    assert isinstance(torch, TorchLive)
    assert torch.devices[0].error_code == 999


@pytest.mark.skipif(shutil.which("python3.8") is None, reason="there is no python3.8 on PATH")
def test_the_oldest_interpreter_in_use(tmp_path: Path) -> None:
    torch, _ = start(str(shutil.which("python3.8")), job(tmp_path, CPU_TORCH))
    if isinstance(torch, Missing) and "version" in torch.detail:
        pytest.skip("python3.8 is a stand-in that starts nothing")
    assert isinstance(torch, TorchLive), torch
    assert torch.imported.ok


@pytest.mark.train
def test_the_real_torch_and_deepspeed() -> None:
    choice = PatientChoice(executable=sys.executable, chosen_by="--python")
    torch, deepspeed = torch_facts.function(
        LocalHost(), choice, RunNeeds(), Missing(why=Why.ABSENT, detail="no driver")
    )
    assert isinstance(torch, TorchLive), torch
    assert torch.imported.ok
    assert torch.version
    assert torch.died is None
    assert torch.cxx11_abi is not None
    assert isinstance(deepspeed, DeepSpeedLive), deepspeed
    assert deepspeed.imported.ok
    assert deepspeed.accelerator in {"cpu", "cuda"}
