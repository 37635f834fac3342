"""Compiling ops: compilers, headers, ninja, the extension cache, nvcc.

Over 400 lines because each failure is one scenario with all that provokes it.
"""

from __future__ import annotations

import os
import signal
import sysconfig
from pathlib import Path

from ._bench import BASE_PATH, HOME, RUN, TRAIN, Bench, scenario
from ._scripts import config, train

BELIEVE = "nvcc and all it prints are real; torch is a CPU build that was told where CUDA_HOME is"

CPU_ADAM = """\
import torch

from deepspeed.ops.adam import DeepSpeedCPUAdam

net = torch.nn.Linear(16, 4)
opt = DeepSpeedCPUAdam(net.parameters(), lr=1e-3)
net(torch.randn(2, 16)).sum().backward()
opt.step()
print("training done")
"""

SMALL_OP = """\
#include <torch/extension.h>
at::Tensor twice(const at::Tensor& x) { return x * 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
"""

PLAIN_OP = """\
#include <Python.h>
static PyModuleDef def = {PyModuleDef_HEAD_INIT, "my_op", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_my_op() { return PyModule_Create(&def); }
"""

LOAD = """\
import os

import torch.utils.cpp_extension

{cuda}
from torch.utils.cpp_extension import load

op = load(name="my_op", sources=[{sources}], verbose=True{more})
print("loaded", op)
"""


def _load(
    bench: Bench,
    sources: str,
    more: str = "",
    env: dict[str, str] | None = None,
    *,
    cuda: bool = False,
) -> int:
    # a CPU build of torch never looks for a toolkit; let it believe in the one that CUDA_HOME names
    believe = "torch.utils.cpp_extension.CUDA_HOME = os.environ['CUDA_HOME']\n" if cuda else ""
    return bench.py(LOAD.format(sources=sources, more=more, cuda=believe), env=env)


@scenario(
    "jit-build-compiler-missing",
    r"c\\+\\+: not found|which c\\+\\+|c\+\+: not found",
    warm=False,
    also_ok=("cpu-adam-unbuilt",),
)
def build_no_cxx(bench: Bench) -> int:
    """No C++ compiler on PATH while DeepSpeed builds cpu_adam."""
    return bench.py(
        CPU_ADAM, env={"PATH": bench.bin_without("c++", "g++", "g++-12", "x86_64-linux-gnu-g++")}
    )


@scenario(
    "jit-build-compiler-missing",
    r"return code|exits with",
    warm=False,
    also_ok=("cpu-adam-unbuilt",),
)
def build_no_cxx_two_ranks(bench: Bench) -> int:
    """The same in a two-rank job with CPU-offloaded Adam: one rank fails in the build, the other in the import of its product."""
    zero = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
    bench.write("ds_config.json", config(zero_optimization=zero))
    path = bench.bin_without("c++", "g++", "g++-12", "x86_64-linux-gnu-g++")
    return bench.deepspeed(
        train(), "--deepspeed", "--deepspeed_config", "ds_config.json", env={"PATH": path}
    )


@scenario(
    "cpu-adam-unbuilt",
    r"cpu_adam\.so: cannot open shared object file",
    also_ok=("jit-build-compiler-missing",),
    warm=False,
    simulated="the wait for another rank's build is forced; build, failure and import are real",
)
def build_cpu_adam_second_try(bench: Bench) -> int:
    """A build that died left its folder; what is seen later is only a missing cpu_adam.so."""
    path = bench.bin_without("c++", "g++", "g++-12", "x86_64-linux-gnu-g++")
    bench.write("train.py", CPU_ADAM)
    bench.run([bench.python, "train.py"], env={"PATH": path}, quiet=True)
    # the second rank of a node waits on the first one's lock, then imports what should be there
    waiting = (
        "import torch.utils.cpp_extension as ext\n"
        "class Waiting(ext.FileBaton):\n"
        "    def try_acquire(self):\n        return False\n"
        "ext.FileBaton = Waiting\n"
    )
    bench.write("sitecustomize.py", waiting)
    return bench.run([bench.python, "train.py"], env={"PATH": path, "PYTHONPATH": str(RUN)})


@scenario("jit-build-ninja-missing", r"Ninja is required to load C\+\+ extensions", warm=False)
def build_no_ninja(bench: Bench) -> int:
    """The environment was not activated, so its ninja is not on PATH."""
    return bench.py(CPU_ADAM, env={"PATH": bench.bin_without("ninja")})


@scenario(
    "jit-build-python-headers-missing", r"Python\.h: No such file", warm=False, needs=("root",)
)
def build_no_python_h(bench: Bench) -> int:
    """python3-dev is not installed: Python.h is absent."""
    include = Path(bench_include(bench))
    bench.mount("-t", "tmpfs", "tmpfs", str(include))
    return bench.py(CPU_ADAM)


def bench_include(bench: Bench) -> str:
    """Where the patient's python keeps Python.h."""
    bench.write(
        "where.py",
        "import sysconfig\nprint(sysconfig.get_paths()['include'], file=open('where', 'w'))\n",
    )
    bench.run([bench.python, "where.py"])
    return (RUN / "where").read_text().strip() or sysconfig.get_paths()["include"]


@scenario("jit-build-compiler-missing", r"cc1plus", warm=False, needs=("root",))
def build_no_cc1plus(bench: Bench) -> int:
    """gcc is there, the C++ front end (package g++) is not: cc1plus cannot be executed."""
    for folder in Path("/usr/lib/gcc").glob("*/*"):
        if (folder / "cc1plus").exists():
            bench.mask(folder / "cc1plus")
    bench.write("my_op.cpp", SMALL_OP)
    return _load(bench, '"my_op.cpp"')


@scenario(
    "jit-build-stale-lock",
    r"",
    warm=False,
    note="A zero-byte lock left by a killed build: a silent hang, killed after 20 s.",
    also_ok=("unrecognised",),
)
def build_stale_lock_hang(bench: Bench) -> int:
    """A leftover lock: silence."""
    _leave_lock()
    return bench.py(CPU_ADAM, deadline=20)


@scenario("jit-build-stale-lock", r"file_baton", warm=False)
def build_stale_lock_ctrl_c(bench: Bench) -> int:
    """A zero-byte lock left by a killed build; the user gives up and presses Ctrl-C."""
    _leave_lock()
    bench.write("train.py", CPU_ADAM)
    return bench.run([bench.python, "train.py"], deadline=15, end=signal.SIGINT)


@scenario(
    "jit-build-stale-lock",
    r"received SIGTERM",
    warm=False,
    also_ok=(
        "unrecognised",
        "none",
    ),
)
def build_stale_lock_launcher_ctrl_c(bench: Bench) -> int:
    """The same under the DeepSpeed launcher with two ranks, ended by SIGTERM from the scheduler."""
    _leave_lock("deepspeed_shm_comm")
    bench.write("ds_config.json", config())
    args = ("--deepspeed", "--deepspeed_config", "ds_config.json")
    return bench.deepspeed(train(), *args, deadline=25, end=signal.SIGTERM)


def _leave_lock(op: str = "cpu_adam") -> None:
    folder = HOME / f".cache/torch_extensions/py311_cpu/{op}"
    folder.mkdir(parents=True)
    (folder / "lock").touch()


@scenario("path-not-writable", r"failed to map segment from shared object", needs=("root",))
def build_cache_noexec(bench: Bench) -> int:
    """The extension cache lies on a file system mounted noexec."""
    noexec = RUN / "scratch"
    noexec.mkdir()
    bench.mount("-t", "tmpfs", "-o", "noexec,size=400m", "tmpfs", str(noexec))
    bench.write("my_op.cpp", PLAIN_OP)
    return _load(bench, '"my_op.cpp"', env={"TORCH_EXTENSIONS_DIR": str(noexec)})


@scenario("disk-full", r"No space left on device", warm=False, needs=("root",))
def build_cache_full(bench: Bench) -> int:
    """The file system of the extension cache is full."""
    cache = HOME / ".cache/torch_extensions"
    cache.mkdir(parents=True)
    bench.mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", str(cache))
    bench.run(["dd", "if=/dev/zero", f"of={cache}/old", "bs=4k"], quiet=True)
    return bench.py(CPU_ADAM)


@scenario("disk-full", r"No space left on device", warm=False, needs=("root",))
def build_cache_fills_up(bench: Bench) -> int:
    """The file system of the extension cache fills up while the assembler writes."""
    cache = HOME / ".cache/torch_extensions"
    cache.mkdir(parents=True)
    bench.mount("-t", "tmpfs", "-o", "size=16k", "tmpfs", str(cache))
    bench.write("my_op.cpp", PLAIN_OP)
    return _load(bench, '"my_op.cpp"', ', extra_cflags=["-g"]')


@scenario("path-not-writable", r"Read-only file system", warm=False, needs=("root",))
def build_cache_readonly(bench: Bench) -> int:
    """The home folder is mounted read-only in the container."""
    bench.mount("-t", "tmpfs", "-o", "ro", "tmpfs", str(HOME))
    return bench.py(CPU_ADAM)


@scenario("path-not-writable", r"Permission denied", warm=False, needs=("root", "su"))
def build_cache_owned_by_root(bench: Bench) -> int:
    """An earlier run as root left a cache that the user may not write."""
    cache = HOME / ".cache/torch_extensions/py311_cpu"
    cache.mkdir(parents=True)
    bench.write("train.py", CPU_ADAM)
    # the patient's python may lie in a folder closed to others: keep root's right to search, drop the right to write
    ambient = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+dac_read_search --ambient-caps=+dac_read_search"
    return bench.run(["sh", "-c", f"exec {ambient} {bench.python} train.py"])


@scenario("libaio-missing", r"Unable to JIT load the async_io op", also_ok=("unrecognised",))
def build_async_io_without_libaio(bench: Bench) -> int:
    """async_io is loaded for NVMe offload; libaio-dev is not installed."""
    return bench.py(
        "from deepspeed.ops.op_builder import AsyncIOBuilder\n\nAsyncIOBuilder().load()\n"
    )


KERNEL = """\
#include <torch/extension.h>
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
"""


@scenario(
    "nvcc-arch-unsupported", r"Unsupported gpu architecture", needs=("nvcc",), simulated=BELIEVE
)
def build_nvcc_drops_volta(bench: Bench) -> int:
    """CUDA 13's nvcc is asked for compute_70 (V100)."""
    bench.write("kernel.cu", KERNEL)
    env = {"TORCH_CUDA_ARCH_LIST": "7.0", "CUDA_HOME": _cuda_home()}
    return _load(bench, '"kernel.cu"', ", with_cuda=True", env, cuda=True)


@scenario(
    "nvcc-arch-unsupported",
    r"Unknown CUDA arch|unknown|Unsupported",
    needs=("nvcc",),
    simulated=BELIEVE,
)
def build_arch_list_malformed(bench: Bench) -> int:
    """TORCH_CUDA_ARCH_LIST holds something that is no architecture."""
    bench.write("kernel.cu", KERNEL)
    return _load(
        bench,
        '"kernel.cu"',
        ", with_cuda=True",
        {"TORCH_CUDA_ARCH_LIST": "Hooper", "CUDA_HOME": _cuda_home()},
        cuda=True,
    )


def _cuda_home() -> str:
    found = sorted(Path("/usr/local").glob("cuda-1*"))
    return str(found[-1] if found else "/usr/local/cuda")


@scenario(
    "cpu-only-torch",
    r"CUDA_HOME environment variable is not set",
    needs=("nvcc",),
    also_ok=("cuda-toolkit-missing",),
)
def build_cuda_op_on_cpu_torch(bench: Bench) -> int:
    """CUDA_HOME is set and nvcc is there, but a CPU build of torch does not look: it says that CUDA_HOME is not set."""
    bench.write("kernel.cu", KERNEL)
    env = {"TORCH_CUDA_ARCH_LIST": "9.0", "CUDA_HOME": _cuda_home()}
    return _load(bench, '"kernel.cu"', ", with_cuda=True", env)


@scenario("cuda-toolkit-missing", r"CUDA_HOME|nvcc", also_ok=("cpu-only-torch",))
def build_cuda_home_unset(bench: Bench) -> int:
    """A CUDA extension is built where no toolkit is installed."""
    bench.write("kernel.cu", KERNEL)
    path = bench.bin_without("nvcc")
    bench.mount("-t", "tmpfs", "tmpfs", "/usr/local")
    return _load(
        bench, '"kernel.cu"', ", with_cuda=True", {"PATH": path, "TORCH_CUDA_ARCH_LIST": "9.0"}
    )


@scenario("cuda-toolkit-missing", r"nvcc: not found", simulated=BELIEVE)
def build_cuda_home_wrong(bench: Bench) -> int:
    """CUDA_HOME names a toolkit that was removed."""
    bench.write("kernel.cu", KERNEL)
    env = {"CUDA_HOME": "/usr/local/cuda-12.4", "TORCH_CUDA_ARCH_LIST": "9.0"}
    return _load(bench, '"kernel.cu"', ", with_cuda=True", env, cuda=True)


@scenario(
    "cuda-toolkit-incomplete",
    r"fatal error: \S+\.h: No such file",
    needs=("nvcc",),
    simulated=BELIEVE,
)
def build_cusparse_header_missing(bench: Bench) -> int:
    """A toolkit with nvcc but without the math libraries' headers."""
    bench.write(
        "kernel.cu",
        KERNEL.replace("<torch/extension.h>", "<torch/extension.h>\n#include <cusparse.h>"),
    )
    return _load(
        bench,
        '"kernel.cu"',
        ", with_cuda=True",
        {"TORCH_CUDA_ARCH_LIST": "9.0", "CUDA_HOME": _cuda_home()},
        cuda=True,
    )


@scenario("cuda-toolkit-incomplete", r"cannot find -lcurand")
def build_link_lcurand(bench: Bench) -> int:
    """The link asks for -lcurand, which has no development link on this machine."""
    bench.write("my_op.cpp", PLAIN_OP)
    return _load(bench, '"my_op.cpp"', ', extra_ldflags=["-lcurand"]')


@scenario(
    "jit-build-gcc-too-new",
    r"unsupported GNU version",
    needs=("nvcc",),
    simulated="nvcc and its header are real; the compiler only claims to be gcc 17",
)
def build_gcc_too_new_for_nvcc(bench: Bench) -> int:
    """nvcc refuses a host compiler newer than it knows."""
    bench.write("g++", '#!/bin/sh\nexec /usr/bin/g++ -U__GNUC__ -D__GNUC__=17 "$@"\n', mode=0o755)
    bench.write("kernel.cu", "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n")
    env = {
        "TORCH_CUDA_ARCH_LIST": "9.0",
        "CUDA_HOME": _cuda_home(),
        "CC": str(RUN / "g++"),
        "CXX": str(RUN / "g++"),
    }
    return _load(bench, '"kernel.cu"', ", with_cuda=True", env, cuda=True)


@scenario("deepspeed-torch-incompatible", r"C\+\+\d\d", also_ok=("jit-build-gcc-too-old",))
def build_std_cxx14_with_new_torch(bench: Bench) -> int:
    """An op whose build still says -std=c++14, as older DeepSpeed releases do, against a torch that wants more."""
    bench.write("my_op.cpp", SMALL_OP)
    return _load(bench, '"my_op.cpp"', ', extra_cflags=["-std=c++14", "-Wfatal-errors"]')


@scenario("pip-build-isolation", r"No module named 'torch'")
def build_pip_isolation(bench: Bench) -> int:
    """pip builds a package whose setup.py imports torch in an isolated environment."""
    bench.write(
        "flash_op/setup.py",
        "import torch\nfrom setuptools import setup\n\nsetup(name='flash_op', version='1.0')\n",
    )
    bench.write(
        "where.py",
        "import ensurepip, os\nopen('where', 'w').write(os.path.join(os.path.dirname(ensurepip.__file__), '_bundled'))\n",
    )
    bench.run([bench.python, "where.py"])
    wheels = (RUN / "where").read_text()
    command = [
        bench.python,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--find-links",
        wheels,
        "./flash_op",
    ]
    return bench.run(
        command, env={"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    )


@scenario("jit-build-compiler-missing", r"InvalidCxxCompiler|No working C\+\+ compiler", warm=False)
def build_inductor_no_compiler(bench: Bench) -> int:
    """torch.compile finds no C++ compiler."""
    script = "import torch\n\n\n@torch.compile\ndef act(x):\n    return torch.relu(x) * 2 + 1\n\n\nprint(act(torch.randn(256)))\n"
    path = bench.bin_without("c++", "g++", "g++-12", "x86_64-linux-gnu-g++", "clang++")
    return bench.py(script, env={"PATH": path})


@scenario("cuda-toolkit-missing", r"CUDA_HOME|nvcc", also_ok=("cpu-only-torch",))
def build_ds_fused_adam_ahead_of_time(bench: Bench) -> int:
    """DeepSpeed's CUDA op is asked for on a machine without toolkit."""
    path = bench.bin_without("nvcc")
    bench.mount("-t", "tmpfs", "tmpfs", "/usr/local")
    script = "from deepspeed.ops.op_builder.builder import installed_cuda_version\n\nprint(installed_cuda_version())\n"
    return bench.py(script, env={"PATH": path})


@scenario(
    "jit-build-compiler-missing", r"was not found|not found", also_ok=("jit-build-ninja-missing",)
)
def build_cc_points_nowhere(bench: Bench) -> int:
    """CXX names a compiler of a module that is not loaded."""
    bench.write("my_op.cpp", SMALL_OP)
    return _load(
        bench, '"my_op.cpp"', env={"CXX": "/opt/gcc-13/bin/g++", "PATH": f"{TRAIN}/bin:{BASE_PATH}"}
    )
