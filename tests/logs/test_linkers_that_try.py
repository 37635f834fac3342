"""A linker that DeepSpeed starts to see whether a library is there, and one that ends a build."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
LINE = "-" * 50 + "\n"
TRIED = (
    "/opt/env/compiler_compat/ld: cannot find -l{lib}: No such file or directory\n"
    "collect2: error: ld returned 1 exit status\n"
)
TABLE = (
    f"{LINE}op name ................ installed .. compatible\n{LINE}"
    "fused_adam ............. [NO] ....... [OKAY]\n{tried}"
    "{op} ............... [NO] ....... [NO]\n"
)
ENVIRONMENT = (
    f"utils .................. [NO] ....... [OKAY]\n{LINE}"
    "DeepSpeed general environment info:\ntorch version .................... 2.7.1\n"
    "deepspeed info ................... 0.17.5, unknown, unknown\n"
)
DIED = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n    main()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity"
    " of 23.64 GiB\n"
)


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


@pytest.mark.parametrize(
    ("lib", "op"),
    [pytest.param("cufile", "gds", id="gds"), pytest.param("aio", "async_io", id="aio")],
)
@pytest.mark.parametrize(
    "below", [pytest.param("", id="cut off"), pytest.param(ENVIRONMENT, id="whole")]
)
def test_what_ds_report_tries_is_not_a_failure(lib: str, op: str, below: str) -> None:
    found = read(TABLE.format(tried=TRIED.format(lib=lib), op=op) + below)
    assert found.outcome is Outcome.CLEAN
    assert not found.causes


@pytest.mark.parametrize("lib", [pytest.param("cufile", id="gds"), pytest.param("aio", id="aio")])
def test_what_an_import_of_deepspeed_tries_is_not_why_the_run_died(lib: str) -> None:
    found = read(f"Setting ds_accelerator to cuda (auto detect)\n{TRIED.format(lib=lib)}{DIED}")
    assert [cause.condition for cause in found.causes] == ["gpu-oom"]


@pytest.mark.parametrize(
    ("lib", "op", "condition"),
    [
        pytest.param("cufile", "gds", "build-dependency-missing", id="gds"),
        pytest.param("aio", "async_io", "libaio-missing", id="aio"),
        pytest.param("curand", "cpu_adam", "cuda-toolkit-incomplete", id="another library"),
    ],
)
def test_the_linker_of_a_build_is(lib: str, op: str, condition: str) -> None:
    found = read(
        f"FAILED: {op}.so\nc++ a.o -shared -l{lib} -o {op}.so\n{TRIED.format(lib=lib)}"
        "ninja: build stopped: subcommand failed.\n"
        f"RuntimeError: Error building extension '{op}'\n"
    )
    assert found.causes[0].condition == condition


def test_the_linker_of_make_is() -> None:
    found = read(f"{TRIED.format(lib='aio')}make[2]: *** [CMakeFiles/tool.dir/all] Error 1\n")
    assert found.causes[0].condition == "libaio-missing"
    assert found.causes[0].confidence >= 0.7


def test_a_library_that_deepspeed_does_not_look_for_is_a_failed_link() -> None:
    found = read(TRIED.format(lib="foo"))
    assert found.causes[0].condition == "build-dependency-missing"


def test_a_log_that_ends_with_a_linker_still_ends_with_a_failure() -> None:
    assert (
        read(
            "gcc -o a a.o\n/usr/bin/ld: a.o: file not recognized\n"
            "collect2: error: ld returned 1 exit status\n"
        ).outcome
        is not Outcome.CLEAN
    )
