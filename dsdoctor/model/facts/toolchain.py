"""Facts about what compiles DeepSpeed's ops: toolkits, compilers, caches."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class Toolkit(msgspec.Struct, frozen=True, kw_only=True):
    """One CUDA toolkit on this machine.

    Attributes:
        root: what CUDA_HOME would be.
        source: `CUDA_HOME`, `CUDA_PATH`, `PATH`, `/usr/local`, `conda`, `pip` or `modules`.
        nvcc: its compiler, None when the folder has none.
        version: `12.4`, None when nvcc did not tell.
        error: why nvcc did not tell (`timed out after 10 s`, `exit 126`, `its output is not text`).
        missing_headers: headers of NEEDED_HEADERS that are not under it.
        has_cudart: a `libcudart.so` (the linker's name) is under lib64, lib or targets.
        trial_ok: the trial compile of `--deep` with it worked; None = not tried.
        trial_error: the compiler's words if it did not.
    """

    root: str
    source: str
    nvcc: str | None = None
    version: str | None = None
    error: str | None = None
    missing_headers: tuple[str, ...] = ()
    has_cudart: bool = True
    trial_ok: bool | None = None
    trial_error: str | None = None

    @property
    def usable(self) -> bool:
        """Whether nvcc is there and told its version."""
        return self.nvcc is not None and self.version is not None


class CudaToolkits(Fact, frozen=True, kw_only=True):
    """All toolkits, and the one that torch's own search order takes (knowledge A2).

    Attributes:
        chosen: index into `found` of the toolkit that torch and DeepSpeed would use, None = none.
        how: why that one (`CUDA_HOME`, `CUDA_PATH`, `nvcc on PATH`, `/usr/local/cuda`).
        found: every toolkit, no folder twice.
        cuda_home_missing: CUDA_HOME or CUDA_PATH names a folder that does not exist (its value).
    """

    chosen: int | None = None
    how: str | None = None
    found: tuple[Toolkit, ...] = ()
    cuda_home_missing: str | None = None

    @property
    def toolkit(self) -> Toolkit | None:
        """The toolkit that would be used."""
        return None if self.chosen is None else self.found[self.chosen]


class Compiler(msgspec.Struct, frozen=True, kw_only=True):
    """A host compiler.

    Attributes:
        command: as the build would call it (`c++`, or the value of CXX).
        path: where that is, None = not on PATH.
        kind: `gcc`, `clang` or None when unknown.
        version: `12.2.0`, None when it did not tell.
        error: why it did not tell.
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
    """What a JIT build calls besides nvcc.

    Attributes:
        cxx: the C++ compiler (`$CXX`, else c++).
        cc: the C compiler that torch passes to nvcc as -ccbin (`$CC`, else cc).
        ninja: path of ninja as a job in the patient would find it on PATH, None = not there.
        ninja_in_env: ninja lies beside the patient's interpreter, though perhaps not on PATH.
    """

    cxx: Compiler
    cc: Compiler
    ninja: str | None = None
    ninja_in_env: str | None = None


class BuildLock(msgspec.Struct, frozen=True, kw_only=True):
    """A `lock` file in an extension build folder.

    Attributes:
        path: the file.
        op: name of the build folder.
        age_seconds: since it was made.
        builders: pids of live compilers or ninjas that work in that folder.
    """

    path: str
    op: str
    age_seconds: float
    builders: tuple[int, ...] = ()


class ExtensionCache(Fact, frozen=True, kw_only=True):
    """Where JIT-built ops go (knowledge A2).

    Attributes:
        root: the folder.
        from_env: it is set by TORCH_EXTENSIONS_DIR.
        writable: the job could write there (the nearest existing parent counts).
        locks: build locks found.
        built: op folders that hold a .so.
        free_bytes: free space there.
    """

    root: str
    from_env: bool = False
    writable: bool = True
    locks: tuple[BuildLock, ...] = ()
    built: tuple[str, ...] = ()
    free_bytes: int | None = None


class Libaio(Fact, frozen=True, kw_only=True):
    """What NVMe offload is built with, as the C compiler finds it.

    Attributes:
        header: `libaio.h` is found.
        library: `libaio.so`, the name that the linker wants, is found.
    """

    header: bool
    library: bool
