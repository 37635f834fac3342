"""Excerpts: echoes that are shown alone, and logs that break off where a program says why it ends."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages"
STORE = (
    "[rank6]:[W729 10:15:17.529361055 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=76,"
    " addr=[n1]:60950, remote=[n0]:29500): Connection reset by peer\n"
)
CALLS = (
    "Exception raised from recvBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:675 (most "
    "recent call first):\nframe #0: c10::Error::Error(std::string) + 0x98 (0x7faded9785e8 in "
    f"{SITE}/torch/lib/libc10.so)\nframe #4: c10d::TCPStore::check(std::vec\n"
)
USAGE = "usage: train.py [-h] [--lr LR] [--data DATA]\n                [--seed SEED] [--out OUT]\n"
SPAWNED = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/train.py", line 57, in main\n    mp.spawn(\n'
    f'  File "{SITE}/torch/multiprocessing/spawn.py", line 149, in join\n'
    "    raise ProcessExitedException(\n"
    "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with "
)


def read(text: str) -> Diagnosis:
    return diagnose([Source(name="a.log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


def test_a_lost_store_that_is_shown_alone_is_what_the_log_shows() -> None:
    assert said(STORE + CALLS) == "peer-connection-lost"
    assert said(STORE * 3) == "peer-connection-lost"


def test_a_store_that_ends_before_its_clients_is_no_failure() -> None:
    """Rank 0 may leave first when a training has ended."""
    assert said("step 100 loss 2.1\ntraining done\n" + STORE + CALLS) == "clean"
    assert said(STORE + "step 101 loss 2.1\n") == "clean"


def test_a_log_that_breaks_off_in_the_usage_of_the_script_is_not_clean() -> None:
    found = read("loading modules\n" + USAGE)
    assert found.outcome is Outcome.UNRECOGNISED
    assert "usage: train.py [-h]" in found.summary


def test_help_that_somebody_asked_for_is_no_failure() -> None:
    asked = "\noptions:\n  -h, --help  show this help message and exit\n  --lr LR     the rate\n"
    assert said(USAGE + asked) == "clean"
    assert said(USAGE + "starting with the defaults\n") == "clean"


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param("signal SIGSEGV", "native-crash", id="a segmentation fault"),
        pytest.param("signal SIGABRT", "native-crash", id="an abort"),
        pytest.param("exit code 3221225620", "native-crash", id="a division by zero on Windows"),
        pytest.param("exit code 1", "unrecognised", id="an exit of its own"),
    ],
)
def test_how_a_spawned_process_ended(end: str, expected: str) -> None:
    assert said(SPAWNED + end + "\n") == expected


def test_an_installed_package_that_lacks_its_own_module() -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/opt/env/bin/trainit", line 5, in <module>\n    from trainit.cli import main\n'
        f'  File "{SITE}/trainit/__init__.py", line 22, in <module>\n    from .{{0}} import Run\n'
        "ModuleNotFoundError: No module named '{1}'\n"
    )
    found = read(trace.format("run", "trainit.run"))
    assert [cause.condition for cause in found.causes] == ["package-damaged"]
    assert "`trainit` lacks its own module `trainit.run`" in found.causes[0].message
    # what was not compiled, what another package lacks, and what is no part of the package
    assert said(trace.format("_C", "trainit._C")) != "package-damaged"
    assert said(trace.format("run", "dacite.run")) != "package-damaged"
    assert said(trace.format("run", "trainit")) != "package-damaged"


def test_a_module_of_the_project_that_importlib_does_not_find_is_its_own() -> None:
    """The frames below it are Python's."""
    trace = (
        '  File "/home/me/proj/nets/__init__.py", line 22, in <listcomp>\n'
        "    importlib.import_module(f'nets.{name}')\n"
        '  File "/opt/env/lib/python3.8/importlib/__init__.py", line 127, in import_module\n'
        "    return _bootstrap._gcd_import(name[level:], package, level)\n"
        "ModuleNotFoundError: No module named 'nets.unet_arch'\n"
    )
    assert said(trace) == "user-code"


def test_a_compiler_that_windows_lacks_is_not_said_to_be_deepspeeds() -> None:
    warned = (
        "C:\\env\\lib\\site-packages\\torch\\utils\\cpp_extension.py:383: UserWarning: Error checking"
        " compiler version for cl: [WinError 2] The system cannot find the file specified\n"
    )
    trace = (
        "Traceback (most recent call last):\n"
        '  File "C:\\me\\train.py", line 3, in <module>\n    load(name="{}")\n'
        "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.\n"
    )
    found = read(warned + trace.format("raster"))
    assert found.causes[0].condition == "jit-build-compiler-missing"
    assert not found.causes[0].fixes  # they are for Linux
    assert said(warned + trace.format("deepspeed_ops")) == "unsupported-on-windows"


def test_memory_that_rust_does_not_get() -> None:
    lines = "memory allocation of memory allocation of 20971522097152 bytes failed\n bytes failed\n"
    assert said("[INFO] loading\n" + lines) == "host-oom-killed"


def test_an_import_that_failed_in_the_first_lines_is_an_earlier_start() -> None:
    failed = (
        "nohup: ignoring input\nTraceback (most recent call last):\n"
        '  File "search.py", line 2, in <module>\n    import sys, pathlib\n'
        "ImportError: No module named pathlib\n"
    )
    trials = "".join(f"trial {n} reached -15.{n}\n" for n in range(60))
    assert said(failed + trials) == "clean"
    assert said(failed + "trial 1 reached -15.1\n") != "clean"
    assert said(trials[:900] + failed + trials) != "clean"


def test_a_check_in_native_code_that_failed_ended_the_process() -> None:
    check = (
        "F0000 00:00:1750170647.707742 1097242 event_mgr.cc:226] Unexpected Event status: 1\n"
        "*** Check failure stack trace: ***\n"
    )
    calls = "".join(f"    @     0x7efd8799b1{n}  pool::Loop{n}()\n" for n in range(10, 22))
    assert said("step 1 loss 2.1\n" + check + calls) == "native-crash"


def test_a_parser_that_does_not_say_which_arguments_it_rejects() -> None:
    assert said(USAGE + "train.py: error: unrecognized arguments:  \n") == "script-option-refused"


def test_a_data_set_without_examples_is_the_scripts_own() -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/main.py", line 30, in main\n    data = load_dataset("json", data_files=f)\n'
        f'  File "{SITE}/datasets/builder.py", line 1949, in _prepare_split_single\n'
        "    num_examples, num_bytes = writer.finalize()\n"
        f'  File "{SITE}/datasets/arrow_writer.py", line 598, in {{}}\n    raise X()\n'
        "datasets.arrow_writer.SchemaInferenceError: Please pass `features` or at least one example"
        " when writing data\n"
    )
    found = read(trace.format("finalize"))
    assert found.outcome is Outcome.USER_CODE
    assert "about the script's data" in found.summary
    assert said(trace.format("write_table")) == "unrecognised"
