from __future__ import annotations

import sys

import pytest

from dsdoctor.api import Probe
from dsdoctor.host import HostError, LocalHost
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import Patient
from dsdoctor.packs.registry import gives, needs
from dsdoctor.probes import builtin
from dsdoctor.probes.launchers import launchers, library_path
from dsdoctor.testing import FakeHost

SITE = "/env/lib/python3.11/site-packages"
PATIENT = Patient(
    executable="/env/bin/python",
    chosen_by="--python",
    version="3.11.7",
    kind="venv",
    prefix="/env",
    sys_path=(SITE,),
    bin_dir="/env/bin",
)
# two environments made with one python: the links lead to the same file
LINKS = {"/env/bin/python": "/usr/bin/python3.11", "/other/bin/python": "/usr/bin/python3.11"}
FILES = {
    "/usr/bin/python3.11": "\x7fELF",
    "/env/pyvenv.cfg": "",
    "/other/pyvenv.cfg": "",
}


@pytest.mark.parametrize(
    ("script", "interpreter", "same"),
    [
        ("#!/env/bin/python\n", "/env/bin/python", True),
        ("#!/other/bin/python\n", "/other/bin/python", False),
        ("#!/usr/bin/python3.11\n", "/usr/bin/python3.11", False),
        ("#!/gone/bin/python3\n", "/gone/bin/python3", False),
        ("#!/usr/bin/env python\n", "/env/bin/python", True),
        ("#!/bin/sh\n'''exec' /other/bin/python \"$0\" \"$@\"\n", "/other/bin/python", False),
        ("#!/bin/bash\nmodule load x\n", "/bin/bash", None),
    ],
)
def test_whose_launcher(script: str, interpreter: str, same: bool | None) -> None:
    host = FakeHost(
        env={"PATH": "/bin:/env/bin"}, files={**FILES, "/bin/deepspeed": script}, links=LINKS
    )
    found = {one.name: one for one in launchers.function(host, PATIENT).launchers}
    assert found["deepspeed"].path == "/bin/deepspeed"
    assert found["deepspeed"].interpreter == interpreter
    assert found["deepspeed"].same_env is same
    assert found["deepspeed"].interpreter_exists is (
        not interpreter.startswith(("/gone/", "/bin/bash"))
    )
    assert found["torchrun"].path is None
    assert found["python"].same_env is True


def test_system_python_by_another_name_is_the_same() -> None:
    patient = Patient(executable="/usr/bin/python3", chosen_by="x", version="3.11.7", prefix="/usr")
    host = FakeHost(
        env={"PATH": "/bin"},
        files={**FILES, "/bin/torchrun": "#!/usr/bin/python3.11\n"},
        links={"/usr/bin/python3": "/usr/bin/python3.11", "/bin/python3": "/usr/bin/python3.11"},
    )
    found = {one.name: one for one in launchers.function(host, patient).launchers}
    assert found["torchrun"].same_env is True
    assert found["python3"].same_env is True


def test_library_path() -> None:
    host = FakeHost(
        env={"LD_LIBRARY_PATH": f"/usr/local/cuda/lib64:{SITE}/nvidia/cudnn/lib"},
        files={
            f"{SITE}/torch/lib/libtorch.so": "",
            f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12": "",
            f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": "",
            "/usr/local/cuda/lib64/libcudart.so.12": "",
            "/usr/local/cuda/lib64/libnvjpeg.so.12": "",
        },
    )
    fact = library_path.function(host, PATIENT)
    assert len(fact.entries) == 2
    assert [(one.name, one.path, one.owner) for one in fact.shadows] == [
        ("libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so.12", "nvidia/cuda_runtime")
    ]


def test_library_path_is_empty() -> None:
    fact = library_path.function(FakeHost(), PATIENT)
    assert (fact.entries, fact.shadows) == ((), ())


@pytest.mark.parametrize(
    "probe",
    [pytest.param(launchers, id="launchers"), pytest.param(library_path, id="library path")],
)
def test_windows(probe: Probe) -> None:
    with pytest.raises(HostError) as caught:
        probe.function(FakeHost(system="Windows"), PATIENT)
    assert caught.value.missing.why is Why.UNSUPPORTED


def test_on_this_machine() -> None:
    version = ".".join(str(number) for number in sys.version_info[:3])
    kind = "system" if sys.prefix == sys.base_prefix else "venv"
    patient = Patient(executable=sys.executable, chosen_by="test", version=version, kind=kind,
                      prefix=sys.prefix, sys_path=tuple(sys.path))  # fmt: skip
    folder = sys.executable.rpartition("/")[0]
    host = LocalHost({"PATH": folder})
    found = {one.name: one for one in launchers.function(host, patient).launchers}
    assert any(found[name].same_env for name in ("python", "python3"))
    assert library_path.function(host, patient).shadows == ()


def test_every_builtin_probe_can_be_injected_and_none_reads_what_another_reads() -> None:
    seen: set[type] = set()
    probes = builtin()
    for probe in probes:
        needs(probe.function)
        facts = gives(probe.function)
        assert not seen.intersection(facts)
        seen.update(facts)
    names = {kind.__name__ for kind in seen}
    assert {"OsInfo", "Resources", "Environment", "NvidiaKernel", "NvidiaSmi", "LibCuda", "Nvml",
            "Gpus", "GpuTopology", "CudaToolkits", "Compilers", "ExtensionCache", "Launchers",
            "LibraryPath"} <= names  # fmt: skip
