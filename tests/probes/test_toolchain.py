from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from dsdoctor.host import Host, HostError, LocalHost, Stat
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.python import Patient, TorchBuild
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.toolchain import CudaToolkits
from dsdoctor.probes.compilers import compilers
from dsdoctor.probes.cuda_toolkits import NEEDED_HEADERS, cuda_toolkits
from dsdoctor.probes.extension_cache import extension_cache
from dsdoctor.process import Result
from dsdoctor.testing import FakeHost

NO_TORCH = Missing(why=Why.ABSENT, detail="no torch")


def toolkits(host: Host, patient: Patient | Missing) -> CudaToolkits:
    found = cuda_toolkits.function(host, patient, RunNeeds(), NO_TORCH)
    assert isinstance(found, CudaToolkits)
    return found


PATIENT = Patient(
    executable="/env/bin/python",
    chosen_by="--python",
    version="3.11.7",
    kind="venv",
    prefix="/env",
    sys_path=("/env/lib/python3.11/site-packages",),
    bin_dir="/env/bin",
)
NVCC = "Cuda compilation tools, release {}, V{}.131\n"


def toolkit(root: str, headers: str = "include") -> dict[str, str]:
    files = {f"{root}/{headers}/{name}": "" for name in NEEDED_HEADERS}
    return {**files, f"{root}/bin/nvcc": "", f"{root}/lib64/libcudart.so": ""}


def says(version: str) -> str:
    return NVCC.format(version, version)


def test_search_order_and_all_that_exist() -> None:
    pip = "/env/lib/python3.11/site-packages/nvidia/cu13"
    host = FakeHost(
        env={"CUDA_HOME": "/opt/cuda/", "PATH": "/usr/local/cuda/bin:/usr/bin"},
        files={
            **toolkit("/opt/cuda"),
            **toolkit("/usr/local/cuda-12.4"),
            f"{pip}/bin/nvcc": "",
            f"{pip}/include/cuda_runtime.h": "",
        },
        links={"/usr/local/cuda": "/usr/local/cuda-12.4"},
        commands={
            "/opt/cuda/bin/nvcc": says("11.8"),
            "/usr/local/cuda": says("12.4"),
            f"{pip}/bin/nvcc": says("13.0"),
        },
    )
    fact = toolkits(host, PATIENT)
    assert fact.how == "CUDA_HOME"
    assert fact.toolkit is not None
    assert (fact.toolkit.root, fact.toolkit.version) == ("/opt/cuda", "11.8")
    assert [(t.source, t.version) for t in fact.found] == [
        ("CUDA_HOME", "11.8"), ("PATH", "12.4"), ("pip", "13.0"),
    ]  # fmt: skip
    assert fact.found[0].missing_headers == ()
    assert "cusparse.h" in fact.found[2].missing_headers
    assert not fact.found[2].has_cudart


def test_links_of_nvcc_on_path_are_not_followed() -> None:
    host = FakeHost(
        env={"PATH": "/usr/bin"},
        files=toolkit("/usr/local/cuda-12.4"),
        links={"/usr/bin/nvcc": "/usr/local/cuda-12.4/bin/nvcc"},
        commands={"/usr/bin/nvcc": says("12.4"), "/usr/local/cuda-12.4": says("12.4")},
    )
    fact = toolkits(host, PATIENT)
    assert fact.how == "nvcc on PATH"
    assert fact.toolkit is not None
    assert fact.toolkit.root == "/usr"
    assert fact.toolkit.version == "12.4"
    assert fact.toolkit.missing_headers == tuple(NEEDED_HEADERS)


def test_cuda_home_that_does_not_exist() -> None:
    host = FakeHost(env={"CUDA_HOME": "/gone"}, files=toolkit("/usr/local/cuda"),
                    commands={"/usr/local/cuda": says("12.4")})  # fmt: skip
    fact = toolkits(host, PATIENT)
    assert (fact.chosen, fact.how, fact.cuda_home_missing) == (None, "CUDA_HOME", "/gone")
    assert len(fact.found) == 1


def test_a_runtime_image_has_no_nvcc() -> None:
    host = FakeHost(files={"/usr/local/cuda/lib64/libcudart.so.12": ""})
    fact = toolkits(host, PATIENT)
    assert fact.toolkit is not None
    assert fact.toolkit.nvcc is None
    assert not fact.toolkit.usable


def test_conda_headers_below_targets() -> None:
    host = FakeHost(
        env={"CONDA_PREFIX": "/c", "PATH": "/c/bin"},
        files={
            **toolkit("/c", "targets/x86_64-linux/include"),
            "/c/targets/x86_64-linux/lib/libcudart.so": "",
        },
        commands={"/c/bin/nvcc": says("12.6")},
    )
    fact = toolkits(host, Missing(why=Why.BROKEN, detail="no patient"))
    assert [t.root for t in fact.found] == ["/c"]
    assert fact.found[0].missing_headers == ()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(
            Result(argv=(), returncode=None, timed_out=True), "timed out after 10 s", id="a timeout"
        ),
        pytest.param(Result(argv=(), returncode=126), "exit 126", id="no execution"),
        pytest.param(
            Result(argv=(), returncode=0, stdout=b"\xff\xfe"),
            "its output is not text",
            id="no text",
        ),
        pytest.param("hello\n", "its output contains no release", id="no release"),
        pytest.param(HostError(Why.DENIED, "may not be run"), "may not be run", id="no permission"),
    ],
)
def test_nvcc_in_trouble(answer: Result | str | HostError, error: str) -> None:
    host = FakeHost(files=toolkit("/usr/local/cuda"), commands={"/usr/local/cuda": answer})
    fact = toolkits(host, PATIENT)
    assert fact.found[0].error == error
    assert not fact.found[0].usable


def test_no_toolkit_at_all() -> None:
    fact = toolkits(FakeHost(), PATIENT)
    assert (fact.found, fact.toolkit, fact.how) == ((), None, None)


GCC = "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"


def test_compilers() -> None:
    host = FakeHost(
        env={"PATH": "/usr/bin", "CXX": "ccache g++ -m64", "CC": "clang"},
        files={"/usr/bin/ccache": "", "/usr/bin/clang": "", "/env/bin/ninja": ""},
        commands={
            "/usr/bin/ccache g++ -m64 --version": GCC,
            "/usr/bin/ccache g++ -m64 -dumpfullversion": "12.2.0\n",
            "/usr/bin/clang --version": "Debian clang version 14.0.6\n",
        },
    )
    fact = compilers.function(host, PATIENT)
    assert (fact.cxx.kind, fact.cxx.version, fact.cxx.major) == ("gcc", "12.2.0", 12)
    assert (fact.cc.kind, fact.cc.version) == ("clang", "14.0.6")
    assert (fact.ninja, fact.ninja_in_env) == (None, "/env/bin/ninja")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param("1.11.1\n", None, id="it works"),
        pytest.param(Result(argv=(), returncode=127), "exit 127", id="its package is gone"),
    ],
)
def test_ninja_is_tried_as_torch_tries_it(answer: str | Result, error: str | None) -> None:
    host = FakeHost(
        env={"PATH": "/env/bin"},
        files={"/env/bin/ninja": ""},
        commands={"/env/bin/ninja --version": answer},
    )
    fact = compilers.function(host, PATIENT)
    assert (fact.ninja, fact.ninja_error) == ("/env/bin/ninja", error)


def test_no_compiler_and_one_that_hangs() -> None:
    hung = Result(argv=(), returncode=None, timed_out=True)
    host = FakeHost(
        env={"PATH": "/usr/bin"}, files={"/usr/bin/cc": ""}, commands={"/usr/bin/cc": hung}
    )
    fact = compilers.function(host, PATIENT)
    assert fact.cxx.path is None
    assert fact.cc.error == "timed out after 10 s"


def test_cache_counts_locks_of_this_python_only() -> None:
    root = "/home/u/.cache/torch_extensions"
    lock = f"{root}/py311_cu128/fused_adam/lock"
    host = FakeHost(
        env={"HOME": "/home/u"},
        files={
            lock: "",
            f"{root}/py310_cu118/cpu_adam/lock": "",
            f"{root}/py311_cu128/utils/utils.so": "",
        },
        stats={lock: Stat(kind="file", mtime=time.time() - 3600)},
        queries={
            "processes": [
                {
                    "pid": 7,
                    "name": "ninja",
                    "argv": ["ninja"],
                    "cwd": f"{root}/py311_cu128/fused_adam",
                },
                {
                    "pid": 8,
                    "name": "bash",
                    "argv": ["bash"],
                    "cwd": f"{root}/py311_cu128/fused_adam",
                },
            ]
        },
    )
    fact = extension_cache.function(host, PATIENT)
    assert (fact.root, fact.from_env, fact.writable) == (root, False, True)
    assert [found.op for found in fact.locks] == ["fused_adam"]
    assert fact.locks[0].age_seconds == pytest.approx(3600, abs=60)
    assert fact.locks[0].builders == (7,)
    assert fact.built == ("utils",)
    assert fact.free_bytes


def test_cache_set_by_the_environment() -> None:
    host = FakeHost(
        env={"TORCH_EXTENSIONS_DIR": "/ext"},
        files={"/ext/cpu_adam/lock": ""},
        stats={"/ext": Stat(kind="dir", writable=False)},
    )
    fact = extension_cache.function(host, PATIENT)
    assert (fact.root, fact.from_env, fact.writable) == ("/ext", True, False)
    assert [lock.op for lock in fact.locks] == ["cpu_adam"]


@pytest.mark.parametrize("read", [toolkits, compilers.function, extension_cache.function])
def test_windows(read: Callable[[Host, Patient], object]) -> None:
    with pytest.raises(HostError) as caught:
        read(FakeHost(system="Windows"), PATIENT)
    assert caught.value.missing.why is Why.UNSUPPORTED


def test_on_this_machine() -> None:
    host = LocalHost()
    version = ".".join(str(number) for number in sys.version_info[:3])
    patient = Patient(executable=sys.executable, chosen_by="test", version=version,
                      prefix=sys.prefix, sys_path=tuple(sys.path))  # fmt: skip
    for found in toolkits(host, patient).found:
        assert found.root.startswith("/")
        assert found.nvcc is None or found.version or found.error
    fact = compilers.function(host, patient)
    assert fact.cxx.path is None or fact.cxx.version or fact.cxx.error
    assert extension_cache.function(host, patient).root


@pytest.mark.parametrize(
    ("where", "by_default"),
    [
        pytest.param("/usr/lib/x86_64-linux-gnu/libcurand.so", True, id="a package of the system"),
        pytest.param("/usr/local/cuda/lib64/stubs/libcurand.so", True, id="LIBRARY_PATH"),
        pytest.param("/site/torch/lib/libcurand.so", True, id="beside torch"),
        pytest.param("/usr/local/cuda/lib64/libcurand.so", False, id="the toolkit"),
        pytest.param("/usr/lib/x86_64-linux-gnu/libcurand.so.10", False, id="no name for linking"),
    ],
)
def test_what_the_linker_finds_by_itself(where: str, by_default: bool) -> None:
    host = FakeHost(
        env={"LIBRARY_PATH": ":/usr/local/cuda/lib64/stubs"},
        files={**toolkit("/usr/local/cuda"), where: ""},
        commands={"/usr/local/cuda": says("12.4")},
    )
    build = TorchBuild(version="2.4.1", cuda="12.4", path="/site/torch")
    fact = cuda_toolkits.function(host, PATIENT, RunNeeds(), build)
    assert fact.curand_by_default is by_default
    assert fact.found[0].has_curand is (where == "/usr/local/cuda/lib64/libcurand.so")


@pytest.mark.parametrize(
    ("where", "by_default"),
    [
        pytest.param("/usr/lib/x86_64-linux-gnu/libcuda.so", True, id="the driver's package"),
        pytest.param("/usr/lib64/libcuda.so", True, id="the driver's installer"),
        pytest.param("/usr/local/cuda/lib64/libcuda.so", True, id="a folder of async_io"),
        pytest.param("/usr/local/cuda/lib64/stubs/libcuda.so", False, id="the stub"),
        pytest.param("/usr/lib/x86_64-linux-gnu/libcuda.so.1", False, id="no name for linking"),
    ],
)
def test_where_the_linker_finds_the_driver(where: str, by_default: bool) -> None:
    host = FakeHost(
        files={**toolkit("/usr/local/cuda"), where: ""},
        commands={"/usr/local/cuda": says("12.4")},
    )
    build = TorchBuild(version="2.4.1", cuda="12.4", path="/site/torch")
    fact = cuda_toolkits.function(host, PATIENT, RunNeeds(), build)
    assert fact.cuda_by_default is by_default
