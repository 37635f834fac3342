"""Facts about what builds DeepSpeed's ops: toolkits, compilers, caches."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact

#: A header that only some ops need; in conda, apt and dnf a package of its own.
PROFILER_HEADER = "cuda_profiler_api.h"


class Toolkit(msgspec.Struct, frozen=True, kw_only=True):
    """One CUDA toolkit on this machine.

    Attributes:
        root: the value that CUDA_HOME would have.
        source: `CUDA_HOME`, `CUDA_PATH`, `PATH`, `/usr/local`, `conda`, `pip` or `modules`.
        nvcc: path of its compiler; None if it has none.
        version: CUDA version (`12.4`); None if nvcc did not report it.
        error: why nvcc did not report it (`timed out after 10 s`, `exit 126`,
            `its output is not text`).
        missing_headers: headers of NEEDED_HEADERS that it does not contain.
        has_cudart: `libcudart.so` (the name that the linker looks for) is under lib64, lib or
            targets.
        has_curand: `libcurand.so` is there, which several ops of DeepSpeed are linked with.
        trial_ok: the trial compile of `--deep` with it worked; None = not tried.
        trial_error: the compiler's message if it did not.
        host_compiler: the gcc of its own that nvcc calls unless another is passed; None if it
            calls the one on PATH. The packages of Debian and Ubuntu have one.
    """

    root: str
    source: str
    nvcc: str | None = None
    version: str | None = None
    error: str | None = None
    missing_headers: tuple[str, ...] = ()
    has_cudart: bool = True
    has_curand: bool = True
    trial_ok: bool | None = None
    trial_error: str | None = None
    host_compiler: str | None = None

    @property
    def usable(self) -> bool:
        """Whether nvcc exists and reported its version."""
        return self.nvcc is not None and self.version is not None

    @property
    def is_complete(self) -> bool:
        """Whether it is usable and has what every build of an op needs."""
        headers = set(self.missing_headers) <= {PROFILER_HEADER}
        return self.usable and headers and self.has_cudart and self.has_curand


class CudaToolkits(Fact, frozen=True, kw_only=True):
    """All CUDA toolkits, and the one that torch's own search order selects.

    Attributes:
        chosen: index into `found` of the toolkit that torch and DeepSpeed would use; None = none.
        how: what selects it (`CUDA_HOME`, `CUDA_PATH`, `nvcc on PATH`, `/usr/local/cuda`).
        found: every toolkit, each folder once.
        cuda_home_missing: value of CUDA_HOME or CUDA_PATH if that folder does not exist.
        curand_by_default: `libcurand.so` is in a folder that the linker searches by itself: one of
            the system's, of LIBRARY_PATH, or torch's own.
        cuda_by_default: so is `libcuda.so`, the driver's library, or it is in the folders that
            DeepSpeed's async_io adds: the root of the chosen toolkit, and `lib64` in it.
    """

    chosen: int | None = None
    how: str | None = None
    found: tuple[Toolkit, ...] = ()
    cuda_home_missing: str | None = None
    curand_by_default: bool = True
    cuda_by_default: bool = True

    @property
    def toolkit(self) -> Toolkit | None:
        """The toolkit that would be used."""
        return None if self.chosen is None else self.found[self.chosen]


class Compiler(msgspec.Struct, frozen=True, kw_only=True):
    """A host compiler.

    Attributes:
        command: as the build would call it (`c++`, or the value of CXX).
        path: its path; None = not on PATH.
        kind: `gcc` or `clang`; None = unknown.
        version: its version (`12.2.0`); None if it did not report one.
        error: why it did not report its version.
    """

    command: str
    path: str | None = None
    kind: str | None = None
    version: str | None = None
    error: str | None = None

    @property
    def major(self) -> int | None:
        """Major version."""
        return int(self.version.split(".")[0]) if self.version else None


class Compilers(Fact, frozen=True, kw_only=True):
    """The programs that a JIT build calls in addition to nvcc.

    Attributes:
        cxx: the C++ compiler (`$CXX`, else c++).
        cc: the C compiler that torch passes to nvcc as -ccbin (`$CC`, else cc).
        ninja: path of ninja as a job in the environment finds it on PATH; None = not found.
        ninja_in_env: path of ninja next to the environment's interpreter, perhaps not on PATH.
        ninja_error: what went wrong with `ninja --version`, with which torch tries it; None = it
            works, or was not tried.
        hipcc: path of ROCm's compiler, where torch looks for it; None = not found.
    """

    cxx: Compiler
    cc: Compiler
    ninja: str | None = None
    ninja_in_env: str | None = None
    ninja_error: str | None = None
    hipcc: str | None = None


class BuildLock(msgspec.Struct, frozen=True, kw_only=True):
    """A `lock` file in an extension build folder.

    Attributes:
        path: the file.
        op: name of the build folder.
        age_seconds: seconds since it was created.
        builders: pids of running compilers or ninja processes that work in that folder.
    """

    path: str
    op: str
    age_seconds: float
    builders: tuple[int, ...] = ()


class ExtensionCache(Fact, frozen=True, kw_only=True):
    """The cache of JIT-built ops.

    Attributes:
        root: the folder.
        from_env: it is set with TORCH_EXTENSIONS_DIR.
        writable: the job can write there (or in the nearest existing parent).
        locks: the build locks found.
        built: op folders that contain a .so.
        free_bytes: free space on its file system.
    """

    root: str
    from_env: bool = False
    writable: bool = True
    locks: tuple[BuildLock, ...] = ()
    built: tuple[str, ...] = ()
    free_bytes: int | None = None


class Libaio(Fact, frozen=True, kw_only=True):
    """libaio, which NVMe offload is built with, as the C compiler finds it.

    Attributes:
        header: `libaio.h` is found.
        library: `libaio.so`, the name that the linker looks for, is found.
    """

    header: bool
    library: bool
