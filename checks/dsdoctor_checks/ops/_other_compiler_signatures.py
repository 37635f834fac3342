"""Messages of `jit-build-compiler-missing` on the compilers of Windows and Rust."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: Of builds on Windows: DeepSpeed, which builds few of its ops there, is `unsupported-on-windows`.
_NO_MSVC = "Windows finds no C++ compiler (`cl`, of Visual Studio)"
_MSVC_HINT = "install the Visual Studio Build Tools with C++, and start the job from their `x64 Native Tools Command Prompt`, or install a prebuilt wheel of the package"
_VICTIMS = ("cpu-adam-unbuilt", "jit-build-stale-lock", "triton-unusable")

SIGNATURES = (
    Signature(
        pattern=r"'cl' is not recognized|No such file or directory: 'cl'|'where', 'cl'\]' returned non-zero",
        source="Windows 10-11 cmd.exe; python 3.3-3.14 Lib/subprocess.py; torch 1.0-2.13 utils/cpp_extension.py (`where cl`)",
        message=_NO_MSVC,
        hint=_MSVC_HINT,
        examples=(
            "'cl' is not recognized as an internal or external command,",
            "FileNotFoundError: [Errno 2] No such file or directory: 'cl'",
            "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
        ),
        level=Level.STRONG,
        fixes=(),
        masks=_VICTIMS,
        not_near=("deepspeed", "DeepSpeed"),
    ),
    Signature(
        # torch only warns of it; what it builds next fails
        pattern=r"Error checking compiler version for cl: |Microsoft Visual C\+\+ [\d.]{1,8} or greater is required",
        source="torch 1.0-2.13 utils/cpp_extension.py; setuptools 20-80 msvc.py",
        message=_NO_MSVC,
        hint=_MSVC_HINT,
        examples=(
            "UserWarning: Error checking compiler version for cl: [WinError 2] The system cannot find the file specified",
            'error: Microsoft Visual C++ 14.0 or greater is required. Get it with "Microsoft C++ Build Tools"',
        ),
        not_examples=("Microsoft Visual C++ or greater is required",),
        level=Level.STRONG,
        fixes=(),
        masks=_VICTIMS,
        not_near=("deepspeed", "DeepSpeed"),
    ),
    Signature(
        pattern=r"^\s*error: linker `(?:cc|gcc|x86_64-linux-gnu-gcc)` not found",
        source="rustc 1.20-1.90 rustc_codegen_ssa/back/link.rs",
        message="Rust finds no C compiler to link with",
        examples=(
            "error: linker `cc` not found",
            "error: linker `gcc` not found",
            "error: linker `x86_64-linux-gnu-gcc` not found",
        ),
        not_examples=("not the error: linker `cc` not found",),
        level=Level.STRONG,
    ),
)
