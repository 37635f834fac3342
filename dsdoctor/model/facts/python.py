"""Facts about the environment examined: its interpreter, packages, torch and DeepSpeed."""

from __future__ import annotations

import re

import msgspec

from dsdoctor.model.facts.base import Fact

#: The first torch whose builds of ops take a lock of the kernel (its utils/cpp_extension.py,
#: `_jit_compile`, in the wheels of 2.13.0 to 2.15.0, read 2026-11-29).
_KERNEL_LOCKS = (2, 14)


class PatientChoice(Fact, frozen=True, kw_only=True):
    """Which interpreter is examined, decided before anything runs in it.

    Attributes:
        executable: path of the interpreter.
        chosen_by: `--python`, `DSDOCTOR_PYTHON`, `VIRTUAL_ENV`, `CONDA_PREFIX`,
            `running interpreter`, `python3 on PATH`, `the command` or `.venv here`.
        why: the reason, as one sentence for the report.
    """

    executable: str
    chosen_by: str
    why: str = ""


class Patient(Fact, frozen=True, kw_only=True):
    """The interpreter examined, read in a child that imports neither torch nor deepspeed.

    Attributes:
        executable: path of the interpreter.
        chosen_by: what chose it, as in `PatientChoice`.
        version: `3.11.7`.
        implementation: `CPython`.
        prefix: sys.prefix.
        base_prefix: sys.base_prefix.
        kind: `venv`, `conda` or `system`.
        user_site: folder of the user site; None if it is disabled.
        include_dir: folder that should contain Python.h.
        has_headers: Python.h exists there.
        sys_path: its sys.path.
        bin_dir: folder of its scripts (`bin` of a venv).
        made_by_uv: `uv venv` made this environment.
        left_by_python: the Python (`3.10`) for which torch lies in this venv, if it is another: the
            interpreter was replaced. None = there is none.
    """

    executable: str
    chosen_by: str
    version: str
    implementation: str = "CPython"
    prefix: str = ""
    base_prefix: str = ""
    kind: str = "system"
    user_site: str | None = None
    include_dir: str | None = None
    has_headers: bool = True
    sys_path: tuple[str, ...] = ()
    bin_dir: str | None = None
    made_by_uv: bool = False
    left_by_python: str | None = None


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """An installed distribution.

    Attributes:
        name: normalized (`nvidia-nccl-cu12`).
        version: version in its metadata.
        location: the folder of sys.path that contains it.
        duplicates: further folders of sys.path that contain the same distribution.
    """

    name: str
    version: str
    location: str = ""
    duplicates: tuple[str, ...] = ()


class Packages(Fact, frozen=True, kw_only=True):
    """All distributions of the environment, and where key modules would be imported from.

    Attributes:
        packages: by normalized name.
        origins: key module to the file that `import` would load; "" = not found.
        shadowed: key module to the file in the working folder or script folder that hides it.
        requires: requirement strings of key packages, by normalized name.
        remnants: packages that pip moved away and did not put back, because it was killed: version
            by normalized name.
    """

    packages: dict[str, Package] = {}
    origins: dict[str, str] = {}
    shadowed: dict[str, str] = {}
    requires: dict[str, tuple[str, ...]] = {}
    remnants: dict[str, str] = {}

    def version(self, name: str) -> str | None:
        """Version of a distribution; None if it is not installed."""
        found = self.packages.get(name)
        return found.version if found else None


class PythonPath(Fact, frozen=True, kw_only=True):
    """The entries of PYTHONPATH.

    Attributes:
        entries: in order, without empty ones.
        missing: those that do not exist.
    """

    entries: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class CertificatePaths(Fact, frozen=True, kw_only=True):
    """The variables that name files of trusted certificates.

    Attributes:
        paths: variable to its value, such as `REQUESTS_CA_BUNDLE` to `/etc/ssl/ca.pem`.
        missing: the variables whose file does not exist.
    """

    paths: dict[str, str] = {}
    missing: tuple[str, ...] = ()


class TorchBuild(Fact, frozen=True, kw_only=True):
    """The torch build, read from its files without importing it.

    Attributes:
        version: version in torch/version.py; None = torch is not installed.
        cuda: CUDA version of the build (`12.8`); None for a build without CUDA.
        hip: ROCm version of the build; None for other builds.
        path: the package's folder.
        debug: it is a debug build.
        nccl: version of the NCCL wheel next to it (`2.27.5`).
        cudnn: version of the cuDNN wheel next to it.
        cuda_wheels: distribution name to version of the CUDA wheels next to it.
        error: why torch/version.py could not be read.
    """

    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    path: str | None = None
    debug: bool = False
    nccl: str | None = None
    cudnn: str | None = None
    cuda_wheels: dict[str, str] = {}
    error: str | None = None

    @property
    def installed(self) -> bool:
        """Whether torch is installed, readable or not."""
        return self.version is not None or self.error is not None

    @property
    def waits_for_lock_files(self) -> bool:
        """Whether a build waits until the file `lock` in the op's folder is gone (before 2.14).

        Newer releases lock the file itself, which ends with the process, and leave it in place.
        """
        found = re.match(r"(\d+)\.(\d+)", self.version or "")
        return found is not None and (int(found[1]), int(found[2])) < _KERNEL_LOCKS


class ImportOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of an import in a child process.

    Attributes:
        ok: it succeeded.
        error_type: exception class (`ImportError`, `OSError`), `signal` or `hang`.
        message: the exception's message, the signal's name, or the step that hung.
        traceback: last lines of the traceback or of stderr.
        signal: number of the signal that killed the child.
        seconds: how long the import took.
    """

    ok: bool
    error_type: str | None = None
    message: str | None = None
    traceback: str = ""
    signal: int | None = None
    seconds: float | None = None


class CudaDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device as torch sees it in the environment.

    Attributes:
        index: torch's device index.
        name: product name.
        uuid: `GPU-…`, if torch reports it.
        major: compute capability, major.
        minor: compute capability, minor.
        memory_bytes: total memory.
        ok: creating a context and one small allocation succeeded.
        tried: that was attempted; False for devices that the run does not use.
        error: why it failed.
        error_code: CUDA error number in that text, if any.
        arch: of an AMD GPU, its architecture (`gfx908`).
    """

    index: int
    name: str
    major: int
    minor: int
    uuid: str | None = None
    memory_bytes: int | None = None
    ok: bool = True
    tried: bool = True
    error: str | None = None
    error_code: int | None = None
    arch: str | None = None


class TorchLive(Fact, frozen=True, kw_only=True):
    """Result of importing torch and initializing CUDA in a child of the environment.

    Attributes:
        imported: outcome of `import torch`.
        last_step: the last step that was started: where it died or hung, if it did.
        died: how the child was ended, if it did not exit on its own (`signal 6 (SIGABRT)`,
            `hung for 120 s`).
        cuda_ok: CUDA initialized; None = not tried (a CPU build, or the import failed).
        cuda_error: torch's message if it did not.
        cuda_error_code: CUDA's error number, if known.
        devices: the devices that torch sees.
        arch_list: architectures of its kernels (`sm_86`, `compute_90`); None = unknown.
        arch_source: `_cuda_getArchFlags`, `get_arch_list`, or None.
        cxx11_abi: it was built with the C++11 ABI.
        nccl: version of NCCL that it loads.
        bf16_emulated: result of `torch.cuda.is_bf16_supported()` as DeepSpeed calls it.
        version: `torch.__version__` of the imported torch; None if it has none.
        file: the file that `import torch` loaded.
    """

    imported: ImportOutcome
    last_step: str = ""
    died: str | None = None
    cuda_ok: bool | None = None
    cuda_error: str | None = None
    cuda_error_code: int | None = None
    devices: tuple[CudaDevice, ...] = ()
    arch_list: tuple[str, ...] | None = None
    arch_source: str | None = None
    cxx11_abi: bool | None = None
    nccl: str | None = None
    bf16_emulated: bool | None = None
    version: str | None = None
    file: str | None = None


class DeepSpeedInstall(Fact, frozen=True, kw_only=True):
    """The DeepSpeed installation, read from its files without importing it.

    Attributes:
        version: version of DeepSpeed; None = not installed.
        path: the package's folder.
        installed_ops: op name to whether it was pre-built.
        built_for_torch: torch version that pre-built ops were built for (`2.5`), None = none were.
        built_for_cuda: CUDA version of those ops.
        built_for_accelerator: the accelerator that DeepSpeed saw when it built them (`cpu` where no
            GPU was visible), None = none were built, or not recorded (before 0.14.1).
        error: its metadata exists but its files could not be read, or the reverse.
    """

    version: str | None = None
    path: str | None = None
    installed_ops: dict[str, bool] = {}
    built_for_torch: str | None = None
    built_for_cuda: str | None = None
    built_for_accelerator: str | None = None
    error: str | None = None

    @property
    def prebuilt(self) -> tuple[str, ...]:
        """Names of the ops that were pre-built."""
        return tuple(sorted(op for op, built in self.installed_ops.items() if built))


class DeepSpeedLive(Fact, frozen=True, kw_only=True):
    """Result of importing deepspeed, after torch, in the same child.

    Attributes:
        imported: outcome of `import deepspeed`.
        accelerator: the accelerator that DeepSpeed chose (`cuda`, `cpu`).
    """

    imported: ImportOutcome
    accelerator: str | None = None


class ModuleImports(Fact, frozen=True, kw_only=True):
    """Result of importing packages with compiled extensions, after torch, in a child of its own.

    Attributes:
        outcomes: module to how its import ended; those that are not installed are left out.
        names: the same for what the script imports from other packages (`trl:SFTTrainer`, `peft`),
            as far as it does so before anything could change where modules are looked for.
    """

    outcomes: dict[str, ImportOutcome] = {}
    names: dict[str, ImportOutcome] = {}


class DamagedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """An installed distribution whose files are not those that were installed.

    Attributes:
        name: normalized.
        version: in its metadata.
        missing: code that was installed and does not exist, relative to site-packages.
        empty: code of 0 bytes that was installed with more.
        cut: compiled files of another size, and source files that begin with a NUL byte.
        files: how many there are; at most 20 of each kind are listed.
    """

    name: str
    version: str
    missing: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    files: int = 0


class DamagedPackages(Fact, frozen=True, kw_only=True):
    """Packages of an import that failed, as far as their files differ from those installed.

    Attributes:
        packages: those with damaged files; none if all imports worked, since none is read then.
    """

    packages: tuple[DamagedPackage, ...] = ()


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """A launcher on PATH.

    Attributes:
        name: `deepspeed`, `torchrun`, `accelerate` or `python`.
        path: its path, as PATH resolves it; None = not found.
        interpreter: interpreter in its first line; None = it is not a script.
        interpreter_exists: whether that interpreter exists; None = unknown.
        same_env: that interpreter is the one examined; None = unknown.
    """

    name: str
    path: str | None = None
    interpreter: str | None = None
    interpreter_exists: bool | None = None
    same_env: bool | None = None


class Launchers(Fact, frozen=True, kw_only=True):
    """The launchers that a user would start by name.

    Attributes:
        launchers: one for each known name.
    """

    launchers: tuple[Launcher, ...] = ()


class LibraryShadow(msgspec.Struct, frozen=True, kw_only=True):
    """A library in LD_LIBRARY_PATH or LD_PRELOAD that torch ships with.

    Attributes:
        name: `libcudart.so.12`.
        path: the foreign copy.
        owner: the wheel, or folder of torch, that contains torch's own copy.
        version: version in the file name that the foreign copy resolves to (`2.18.3`); None = none.
    """

    name: str
    path: str
    owner: str
    version: str | None = None


class LibraryPath(Fact, frozen=True, kw_only=True):
    """LD_LIBRARY_PATH, and libraries in it that would be loaded before torch's own.

    Attributes:
        entries: folders, in order.
        shadows: libraries that hide torch's own.
        cxx_runtime: the libstdc++.so.6 in one of them, or in the conda environment of the
            interpreter; None = that of the system is loaded, or two of them differ.
        cxx_release: N of its GLIBCXX_3.4.N, by the name of its file.
    """

    entries: tuple[str, ...] = ()
    shadows: tuple[LibraryShadow, ...] = ()
    cxx_runtime: str | None = None
    cxx_release: int | None = None
