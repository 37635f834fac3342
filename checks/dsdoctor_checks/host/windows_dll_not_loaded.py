"""Windows could not load a DLL that a program needs.

## Why it matters
The program ends before its first line, and prints nothing: only its exit status says why. 0xC0000135 means
that a DLL was not found, 0xC0000139 that a DLL does not have a function that another one needs,
0xC000007B that a DLL is of another architecture or damaged, and 0xC0000142 that a DLL failed while it
was being loaded.

## What to do
Install the Visual C++ Redistributable (2015-2022, x64), and activate the environment, so that its folder of
DLLs (`Library/bin`, `Scripts`) is on PATH. A copy of the same DLL further ahead on PATH has the same effect;
`where NAME.dll` lists them. After 0xC0000142, start the job in an interactive session too.

## References
- https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-erref/ (NTSTATUS values)
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("windows-dll-not-loaded", id="DSD1063", scope=Scope.USER_ENV, since="0.1")

HINT = "install the Visual C++ Redistributable (2015-2022, x64), and activate the environment, so that its DLLs are found on PATH first"

_VICTIMS = ("rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout")
_STATUS = r"(?:[Ee]xit(?:ed)?(?: with)?(?: exit)? ?(?:code|status):?|exitcode *:|return code =|exit status) ?\(?"
_SOURCE = "Windows 7-11: NTSTATUS of a process that its loader ended"

SIGNATURES = (
    Signature(
        pattern=_STATUS + r"(?:0x[Cc]0000135|-1073741515|3221225781)\b",
        source=_SOURCE,
        message="a program did not start because a DLL that it needs was not found (0xC0000135)",
        examples=(
            "Process finished with exit code -1073741515 (0xC0000135)",
            "failed (exitcode: 3221225781) local_rank: 0 (pid: 9132) of binary: C:\\env\\python.exe",
            "exits with return code = 3221225781",
            "returned non-zero exit status 3221225781.",
            "exit code 0xC0000135",
            "train.py exited with exit code 3221225781",
        ),
        not_examples=("exit code -10737415150", "after 3221225781 steps"),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=_STATUS
        + r"(?:0x[Cc]000(?:0139|007[Bb])|-1073741511|-1073741701|3221225785|3221225595)\b",
        source=_SOURCE,
        message="a program did not start because a DLL is of another release or architecture than it needs",
        examples=(
            "Process finished with exit code -1073741511 (0xC0000139)",
            "Process finished with exit code -1073741701 (0xC000007B)",
            "failed (exitcode: 3221225785) local_rank: 0 (pid: 9132) of binary: C:\\env\\python.exe",
            "exits with return code = 3221225595",
            "returned non-zero exit status 3221225785.",
            "exit code 0xC0000139",
            "exit code 0xC000007B",
        ),
        not_examples=("exit code -10737415110",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=_STATUS + r"(?:0x[Cc]0000142|-1073741502|3221225794)\b",
        source=_SOURCE,
        message="a program did not start because a DLL failed while it was being loaded (0xC0000142)",
        hint="reinstall the program or package that fails, and start the job in an interactive session: a service, or a session that is being closed, has too little desktop heap",
        examples=(
            "Process finished with exit code -1073741502 (0xC0000142)",
            "failed (exitcode: 3221225794) local_rank: 0 (pid: 9132) of binary: C:\\env\\python.exe",
            "exits with return code = 3221225794",
            "returned non-zero exit status 3221225794.",
            "exit code 0xC0000142",
        ),
        not_examples=("exit code -10737415020",),
        level=Level.LIKELY,
        masks=_VICTIMS,
    ),
    Signature(
        # the C++ runtime that a bundled Python brings along is often older than what libtriton needs
        pattern=r"DLL load failed while importing (?P<module>libtriton|__triton_launcher)\b",
        source="triton-windows 3.0-3.5, with the words of CPython 3.8-3.14 Python/dynload_win.c",
        message="Windows could not load `{module}` of Triton, or a DLL that it needs",
        hint="install the Visual C++ Redistributable (2015-2022, x64); next to a Python that came with another program, put the same `vcruntime140.dll`, `vcruntime140_1.dll` and `msvcp140.dll` as in `System32`; then install the `triton-windows` for this release of torch",
        examples=(
            "ImportError: DLL load failed while importing libtriton: A dynamic link library (DLL) initialization routine failed.",
            "ImportError: DLL load failed while importing __triton_launcher: The specified module could not be found.",
        ),
        not_examples=("ImportError: DLL load failed while importing libtritonserver: not found",),
        level=Level.STRONG,
        not_near=("A matching Triton is not available",),  # xformers goes on without it
        masks=("triton-unusable", "unsupported-on-windows", *_VICTIMS),
    ),
    Signature(
        # Windows says the reason in its own language
        pattern=r"^(?:\S{1,100}\.)?ImportError: DLL load failed while importing (?P<module>(?!MPI\b)\w{1,80}): ",
        source="CPython 3.8-3.14 Python/dynload_win.c",
        message="Windows could not load the module `{module}`, or a DLL that it needs",
        hint="install the Visual C++ Redistributable (2015-2022, x64), then reinstall the package that `{module}` is part of, in a release for this Python and this torch",
        examples=(
            "ImportError: DLL load failed while importing _torchaudio: The specified module could not be found.",
            "builtins.ImportError: DLL load failed while importing onnxruntime_pybind11_state: A dynamic link library (DLL) initialization routine failed.",
        ),
        not_examples=("ImportError: DLL load failed while importing MPI: not found",),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
)
