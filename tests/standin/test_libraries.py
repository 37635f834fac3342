"""The stand-in libraries without torch: they compile, and answer as the scenario says."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tests.nvml import fakenvml
from tests.standin import build
from tests.standin.conftest import GIB, machine

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

#: What a child of these tests starts with: the three libraries, and calls by name.
PRELUDE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
rt = ctypes.CDLL("libcudart.so.12", mode=ctypes.RTLD_GLOBAL)
nccl = ctypes.CDLL("libnccl.so.2")
rt.cudaGetErrorString.restype = ctypes.c_char_p
def number(function, *arguments):
    out = ctypes.c_int(-1)
    code = function(ctypes.byref(out), *arguments)
    return out.value if code == 0 else f"error {code}"
def taken(size):
    out = ctypes.c_void_p()
    code = rt.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(size))
    return code or out
"""


@functools.cache
def libraries() -> Path:
    """The three libraries, compiled once."""
    folder = Path(tempfile.mkdtemp(prefix="standin-"))
    for name, source in (
        ("libcuda.so.1", "cuda.cpp"),
        ("libcudart.so.12", "cudart.cpp"),
        ("libnccl.so.2", "nccl.cpp"),
    ):
        build.compile_library(
            folder / name,
            [build.SOURCES / source],
            "-DNCCL_VERSION=22705",
            "-Werror",
            optimize="-O1",
        )
    return folder


@pytest.fixture(scope="module", autouse=True)
def _clean() -> object:
    yield
    shutil.rmtree(libraries(), ignore_errors=True)
    libraries.cache_clear()


def start(
    tmp_path: Path, code: str, scenario: fakenvml.Scenario, *arguments: str, **variables: str
) -> subprocess.Popen[str]:
    path = tmp_path / "machine.conf"
    fakenvml.write_scenario(path, scenario)
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *arguments],
        env={**env, "FAKE_NVML": str(path), "LD_LIBRARY_PATH": str(libraries()), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def lines(tmp_path: Path, code: str, scenario: fakenvml.Scenario, **variables: str) -> list[str]:
    child = start(tmp_path, code, scenario, **variables)
    out, _ = child.communicate(timeout=200)
    assert child.returncode == 0, out
    return out.splitlines()


@pytest.mark.parametrize(("visible", "expected"), [
    (None, ["4", "27,43,59,75"]), ("2,0", ["2", "59,27"]), ("1,9,0", ["1", "43"]),
    ("", ["error 100", ""]), ("0,0", ["error 100", ""]),
])  # fmt: skip
def test_visible_devices_choose_and_order(
    tmp_path: Path, visible: str | None, expected: list[str]
) -> None:
    code = """
        count = number(rt.cudaGetDeviceCount)
        print(count)
        print(",".join(str(number(rt.cudaDeviceGetAttribute, 33, i)) for i in range(count)) if isinstance(count, int) else "")
    """
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert lines(tmp_path, code, machine(4), **variables) == expected


def test_a_uuid_chooses_a_gpu(tmp_path: Path) -> None:
    scenario = machine(4)
    uuid = scenario["gpus"][2]["uuid"]
    code = """
        out = ctypes.create_string_buffer(16)
        cuda.cuInit(0)
        cuda.cuDeviceGetUuid(out, 0)
        print(out.raw.hex())
    """
    assert lines(tmp_path, code, scenario, CUDA_VISIBLE_DEVICES=uuid) == [uuid[4:].replace("-", "")]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param({"fail": {"cuInit": 802}}, "error 802", id="the fabric is not ready"),
        pytest.param({"fail": {"cuInit": 999}}, "error 999", id="an unknown error of the driver"),
        pytest.param({"cuda": 11080}, "error 35", id="a driver that is too old"),
        pytest.param(
            {"fail": {"cudaGetDeviceCount": 304}},
            "error 304",
            id="an error of the operating system",
        ),
        pytest.param({}, "2", id="sound"),
    ],
)
def test_the_runtime_starts_or_says_why(
    tmp_path: Path, fault: fakenvml.Scenario, expected: str
) -> None:
    assert lines(tmp_path, "print(number(rt.cudaGetDeviceCount))", {**machine(), **fault}) == [
        expected
    ]


def test_a_fabric_that_is_not_ready_keeps_cuda_from_starting(tmp_path: Path) -> None:
    scenario = machine()
    scenario["gpus"][1]["fabric"] = {"state": 2, "status": 0, "clique": 0}
    assert lines(tmp_path, "print(cuda.cuInit(0))", scenario) == ["802"]


def test_exclusive_mode_keeps_a_second_process_off(tmp_path: Path) -> None:
    scenario = machine()
    scenario["gpus"][1].update({"compute_mode": 3, "compute_processes": [{"pid": 1}]})
    assert lines(tmp_path, "print(rt.cudaSetDevice(0), rt.cudaSetDevice(1))", scenario) == ["0 46"]


def test_memory_ends_where_the_card_does(tmp_path: Path) -> None:
    code = f"""
        first = taken({3 * GIB})
        print(taken({GIB}), rt.cudaFree(first), type(taken({GIB})).__name__)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        print((total.value - free.value) >> 20, total.value >> 30)
    """
    # 1 GiB, a context of 512 MiB, and 4 MiB that the scenario says are used
    assert lines(tmp_path, code, machine(memory=4 * GIB)) == ["2 0 c_void_p", "1540 4"]


def test_a_fault_comes_after_so_many_calls_and_then_stays(tmp_path: Path) -> None:
    code = """
        print([rt.cudaDeviceSynchronize() for _ in range(4)], rt.cudaSetDevice(1), rt.cudaGetLastError(), rt.cudaGetLastError())
    """
    scenario = machine(fail={"cudaDeviceSynchronize@0": 719}, after={"cudaDeviceSynchronize@0": 2})
    assert lines(tmp_path, code, scenario) == ["[0, 0, 719, 719] 719 719 719"]


def test_a_fault_of_one_gpu_is_not_another_s(tmp_path: Path) -> None:
    code = "print(rt.cudaSetDevice(0), rt.cudaSetDevice(1), rt.cudaGetLastError(), rt.cudaGetLastError())"
    scenario = machine(fail={"cuDevicePrimaryCtxRetain@1": 2})
    assert lines(tmp_path, code, scenario) == ["0 2 2 0"]


RANK = """
    rank = int(sys.argv[1])
    class Id(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]
    rt.cudaSetDevice(rank)
    comm = ctypes.c_void_p()
    code = nccl.ncclCommInitRank(ctypes.byref(comm), 2, Id(sys.argv[2].encode()), rank)
    values = (ctypes.c_float * 3)(*[rank + 1.0] * 3)
    if code == 0:
        code = nccl.ncclAllReduce(values, values, ctypes.c_size_t(3), 7, 0, comm, None)
    print(code, list(values))
"""


def both(tmp_path: Path, scenario: fakenvml.Scenario, **variables: str) -> list[str]:
    name = f"test{os.getpid()}{tmp_path.name}"[:60]
    children = [start(tmp_path, RANK, scenario, str(rank), name, **variables) for rank in range(2)]
    return [child.communicate(timeout=200)[0].strip() for child in children]


def test_two_ranks_add_up(tmp_path: Path) -> None:
    assert both(tmp_path, machine()) == ["0 [3.0, 3.0, 3.0]"] * 2


def test_a_rank_computes_wrongly(tmp_path: Path) -> None:
    good, bad = both(tmp_path, machine(corrupt={"ncclAllReduce@1": 1}))
    assert good == "0 [3.0, 3.0, 3.0]"
    assert bad.startswith("0 [0.74")


@pytest.mark.parametrize(("value", "second"), [("1", "3.0"), ("0", "0.74")])
def test_a_setting_keeps_a_fault_away(tmp_path: Path, value: str, second: str) -> None:
    scenario = machine(
        corrupt={"ncclAllReduce@1": 1}, unless={"ncclAllReduce@1": "NCCL_P2P_DISABLE=1"}
    )
    good, other = both(tmp_path, scenario, NCCL_P2P_DISABLE=value)
    assert good == "0 [3.0, 3.0, 3.0]"
    assert other.startswith(f"0 [{second}")


def test_a_rank_fails(tmp_path: Path) -> None:
    assert both(tmp_path, machine(fail={"ncclCommInitRank": 2})) == [
        "2 [1.0, 1.0, 1.0]",
        "2 [2.0, 2.0, 2.0]",
    ]


def test_two_ranks_on_one_gpu_are_refused(tmp_path: Path) -> None:
    assert [line[0] for line in both(tmp_path, machine(1))] == ["5", "5"]
