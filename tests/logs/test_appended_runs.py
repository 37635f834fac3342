"""Runs in one log that nothing but the log itself separates, and which exception is of which."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
OOM = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 9, in <module>\n'
    "    y = model(x)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 1.00 GiB is free.\n"
)
TYPO = (
    "Traceback (most recent call last):\n"
    '  File "/home/u/train.py", line 30, in <module>\n'
    "    main()\n"
    "NameError: name 'loss' is not defined\n"
)
RESULTS = "".join(f"sample {n} is answered\n" for n in range(60))


def read(text: str) -> Diagnosis:
    """The verdict on one log."""
    return diagnose([Source(name="train.log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = read(text)
    return found.causes[0].condition if found.outcome is Outcome.CAUSE else found.outcome.value


def job(date: str) -> str:
    """What a batch script prints first: `date`, then `nvidia-smi`."""
    return (
        f"{date}       \n"
        "+-----------------------------------------------------------------------+\n"
        "| NVIDIA-SMI 570.158.01   Driver Version: 570.158.01   CUDA Version: 12.8 |\n"
        "|-------------------------+-----------------------+---------------------+\n"
        "| GPU  Name  Persistence-M | Bus-Id         Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp  Perf          |          Memory-Usage | GPU-Util  Compute M. |\n"
        "+-----------------------------------------------------------------------+\n"
    )


def test_a_batch_script_that_prints_the_date_begins_a_run() -> None:
    first = job("Sun Jan 11 02:53:50 2026")
    second = job("Mon Feb  2 19:30:00 2026")
    assert said(first + OOM + second + RESULTS) == "clean"
    assert said(first + OOM + second + TYPO) == "user-code"
    assert said(first + RESULTS + second + OOM) == "gpu-oom"


def test_the_table_of_nvidia_smi_alone_begins_no_run() -> None:
    """A script that prints it when it fails has not been started anew."""
    table = job("Sun Jan 11 02:53:50 2026").partition("\n")[2]
    assert said(job("Sun Jan 11 02:50:00 2026") + OOM + table + RESULTS) == "gpu-oom"


def test_an_opening_of_short_lines_is_found_too() -> None:
    """The longest text of its lines is searched for; that enough of them recur decides."""
    first = "Environment:\n\tPython: 3.11.3\n\tPyTorch: 2.0.0\n\tCUDA: 11.7\n\tNumPy: 1.24.3\n"
    assert said(first + OOM + first + RESULTS) == "clean"
    assert said(first + OOM + first.partition("\n")[0] + "\n" + RESULTS) == "gpu-oom"


def header(name: str) -> str:
    """What a script prints first, without a clock."""
    return (
        f">>>>>>>start training : forecast_{name}_96\n"
        "321 17645\ntrain 17645\nval 2536\ntest 5165\nnext learning rate is 0.0005\n"
    )


def test_an_opening_is_found_among_what_workers_print_when_they_import_a_module() -> None:
    """The same two lines, which the opening contains as well, recur many times in a block."""
    imports = "INFO:index:Loading the index.\nINFO:index:Successfully loaded the index.\n"
    first = imports * 2 + "INFO:root:called-params of vit\nINFO:root:loaded params...\n"
    many = imports * 300
    assert said(first + many + OOM + first + many + RESULTS) == "clean"
    assert said(first + many + OOM + first + many + TYPO) == "user-code"
    assert said(first + many + OOM + many + RESULTS) == "gpu-oom"


def test_a_run_without_a_failure_in_between_does_not_end_the_search_for_runs() -> None:
    """What came again below what ended a run is the opening of each run that follows."""
    many = RESULTS * 1_000  # more than a block
    runs = header("ecl1") + OOM + header("ecl2") + many + header("ecl3") + many + OOM
    assert said(runs + header("ecl4") + RESULTS) == "clean"
    assert said(runs + header("ecl4") + RESULTS + TYPO) == "user-code"


def test_an_opening_is_found_wherever_the_log_is_divided_for_reading() -> None:
    def start(n: int) -> str:
        return (
            f"==== attempt {n} ====\nSetting ds_accelerator to cuda (auto detect)\n"
            "Initializing TorchBackend in DeepSpeed with backend nccl\ncdb=None\n"
        )

    last = "".join(f"sample {n} is answered\n" for n in range(50))
    for lines in range(50):
        tail = "".join(last.splitlines(keepends=True)[:lines])
        text = start(1) + RESULTS + OOM + start(2) + tail + TYPO
        assert said(text) == "user-code", lines


def script(name: str, line: int, error: str) -> str:
    """The end of a script."""
    return (
        "Traceback (most recent call last):\n"
        f'  File "/home/u/{name}", line {line}, in <module>\n'
        "    main()\n"
        f"{error}\n"
    )


def test_a_script_that_fails_for_want_of_what_another_writes_is_not_the_first_failure() -> None:
    missing = script("prepare.py", 78, "NameError: name 'u' is not defined")
    corrupt = script("train.py", 258, "_pickle.UnpicklingError: invalid load key, 'v'.")
    assert said(missing + corrupt) == "user-code"
    assert said(corrupt) == "weights-file-corrupt"


def test_an_exception_that_the_same_script_handled_is_not_the_cause() -> None:
    """The process that prints both has outlived the first."""
    handled = script("train.py", 40, "ValueError: no cached copy")
    assert said(handled + RESULTS[:200] + OOM) == "gpu-oom"


def test_the_second_traceback_of_what_a_library_raises_anew_names_the_caller() -> None:
    inner = (
        "Traceback (most recent call last):\n"
        '  File "/opt/v/lib/python3.9/site-packages/nibabel/loadsave.py", line 90, in load\n'
        "    stat_result = os.stat(filename)\n"
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/roi.nii'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
    )
    outer = (
        "Traceback (most recent call last):\n"
        '  File "/home/u/trend.py", line 21, in load_data\n'
        "    image = nib.load(path)\n"
        '  File "/opt/v/lib/python3.9/site-packages/nibabel/loadsave.py", line 92, in load\n'
        "    raise FileNotFoundError(path)\n"
        "FileNotFoundError: No such file or no access: '/data/roi.nii'\n"
    )
    found = read(inner + outer)
    assert [cause.condition for cause in found.causes] == ["path-missing"]
    assert found.first_error is not None
    assert found.first_error.file == "/home/u/trend.py"
    other = outer.replace("in load\n", "in peek\n")
    assert read(inner + other).outcome is Outcome.UNRECOGNISED


SITE = "/opt/v/lib/python3.9/site-packages"


@pytest.mark.parametrize(
    ("frames", "wanted"),
    [
        pytest.param(
            [
                ("/home/u/train.py", "<module>"),
                (f"{SITE}/dask/__init__.py", "<module>"),
                (f"{SITE}/dask/config.py", "collect"),
            ],
            Outcome.UNRECOGNISED,
            id="imported by the script",
        ),
        pytest.param(
            [("/home/u/train.py", "<module>"), (f"{SITE}/dask/config.py", "collect")],
            Outcome.USER_CODE,
            id="called by the script",
        ),
        pytest.param(
            [
                (f"{SITE}/launchpad/__main__.py", "<module>"),
                ("/home/u/train.py", "main"),
                (f"{SITE}/dask/config.py", "collect"),
            ],
            Outcome.USER_CODE,
            id="called by a script that another launched",
        ),
    ],
)
def test_a_function_that_runs_while_its_package_is_imported_is_not_called_by_the_script(
    frames: list[tuple[str, str]], wanted: Outcome
) -> None:
    calls = "".join(f'  File "{file}", line 5, in {name}\n    run()\n' for file, name in frames)
    error = "TypeError: gather() missing 1 required positional argument: 'paths'\n"
    assert read(f"Traceback (most recent call last):\n{calls}{error}").outcome is wanted


def interrupted_import(rank: str = "") -> str:
    """A script that is stopped while it loads its packages."""
    return (
        f"{rank}Traceback (most recent call last):\n"
        f'{rank}  File "/home/u/train.py", line 3, in <module>\n{rank}    import transformers\n'
        f'{rank}  File "{SITE}/transformers/__init__.py", line 27, in <module>\n'
        f"{rank}    from . import utils\n{rank}KeyboardInterrupt\n"
    )


def test_a_script_that_loads_its_packages_below_its_failure_was_started_again() -> None:
    assert said(TYPO + interrupted_import()) == "interrupted-by-user"
    assert said(TYPO.replace("train.py", "prepare.py") + interrupted_import()) == "user-code"


def test_another_rank_may_still_load_its_packages_when_one_fails() -> None:
    failed = "".join(f"[rank0]: {line}\n" for line in TYPO.splitlines())
    assert said(failed + interrupted_import("[rank1]: ")) == "user-code"


def failed_at(line: int, error: str) -> str:
    """A traceback of a script, from one of its own statements."""
    return (
        "Traceback (most recent call last):\n"
        f'  File "/home/u/train.py", line {line}, in <module>\n    run()\n{error}\n'
    )


BATCH = failed_at(41, "ValueError: bad batch")
NO_ACCESS = failed_at(5, "PermissionError: [Errno 13] Permission denied: '/data/private/a.jsonl'")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            BATCH + "loading dataset\n" + NO_ACCESS,
            "path-not-writable",
            id="above the statement, after a new start",
        ),
        # directly below: another rank in the same loop
        pytest.param(BATCH + NO_ACCESS, "user-code", id="directly below the progress bar"),
        pytest.param(
            BATCH + "loading dataset\n" + NO_ACCESS.replace("train.py", "data.py"),
            "user-code",
            id="another file of the script",
        ),
    ],
)
def test_a_script_that_fails_above_the_statement_that_trained_was_started_again(
    text: str, wanted: str
) -> None:
    steps = "".join(f" 1%|# | {i}/1000 [00:10<16:30, 1.00it/s]\n" for i in range(10, 20))
    assert said(steps + text) == wanted


def test_without_steps_another_rank_may_be_further_behind() -> None:
    assert said(BATCH + "loading dataset\n" + NO_ACCESS) == "user-code"


LSF = (
    "\n------------------------------------------------------------\n"
    "Sender: LSF System <lsfadmin@n-1>\n"
    "Subject: Job 4711: <train> in cluster <hpc> {state}\n\n"
    "Job <train> was submitted from host <login1> by user <me> in cluster <hpc> at Mon Nov 30\n"
    "Started at Mon Nov 30 23:25:44 2020\n"
    "Terminated at Tue Dec  1 22:21:02 2020\n\n"
    "{ended}\n\n"
    "Resource usage summary:\n\n"
    "    CPU time :                                   82000.00 sec.\n\n"
    "The output (if any) is above this job summary.\n\n"
)
FAILED = LSF.format(state="Exited", ended="Exited with exit code 1.")
DONE = LSF.format(state="Done", ended="Successfully completed.")


def test_lsf_appends_jobs_to_one_file() -> None:
    assert said(OOM + FAILED) == "gpu-oom"
    assert said(OOM + FAILED + RESULTS + DONE) == "clean"
    assert said(RESULTS + DONE + OOM + FAILED) == "gpu-oom"
    limit = "TERM_RUNLIMIT: job killed after reaching LSF run time limit."
    ended = LSF.format(state="Exited", ended=limit + "\nExited with exit code 140.")
    assert said(TYPO + FAILED + RESULTS + ended) == "job-time-limit"


def test_the_table_that_was_printed_after_a_failure_is_no_later_part_of_the_run() -> None:
    banner = (
        "ERROR: The NVIDIA Driver is present, but CUDA failed to initialize.  GPU functionality will "
        "not be available.\n   [[ System not yet initialized (error 802) ]]\n\n"
    )
    row = (
        "|   {n}  NVIDIA A100-SXM4-40GB    On  |  00000000:{n}B:00.0 Off |                    0 |\n"
    )
    border = (
        "+-------------------------------+----------------------------+----------------------+\n"
    )
    table = "".join(row.format(n=n % 8) + border for n in range(24))
    assert said(banner + table + "```\n") == "fabric-manager-not-running"
    assert said(banner + table + "".join(f"loss at {n}\n" for n in range(40))) == "clean"


def test_a_script_that_ran_after_its_name_was_corrected() -> None:
    missing = "/usr/bin/python: can't open file '{}': [Errno 2] No such file or directory\n"
    assert said(missing.format("/home/u/trian.py") + RESULTS + TYPO) == "user-code"
    assert said(missing.format("trian.py") + RESULTS + OOM) == "gpu-oom"
    assert said(missing.format("trian.py")) == "launch-file-missing"
    # other nodes may have the script, and what they lose is a peer
    assert said(missing.format("train.py") + RESULTS + TYPO) == "launch-file-missing"


#: What a logger writes of an exception that a program caught.
CAUGHT = (
    "2026-03-30 13:32:41 - ERROR - request failed, retrying\n"
    "Traceback (most recent call last):\n"
    '  File "/home/u/serve.py", line 311, in main\n'
    "    answer()\n"
    "RuntimeError: No available devices\n"
)


def logged(count: int) -> str:
    return "".join(f"2026-03-30 13:34:47 - INFO - item {n} is written\n" for n in range(count))


def test_a_log_that_goes_on_for_long_below_its_exceptions() -> None:
    found = read(logged(30) + CAUGHT + logged(1200))
    assert found.outcome is Outcome.CLEAN
    assert found.summary == (
        "the last exception is at line 35, and the log goes on for long below it"
    )
    assert said(logged(30) + CAUGHT + logged(200)) == "user-code"
    # what another rank writes does not show that the one of the exception lives
    one = "".join(f"[rank1]: {line}\n" for line in CAUGHT.splitlines()[1:])
    two = "".join(f"[rank0]: {line}\n" for line in logged(1200).splitlines())
    assert said(one + two) == "user-code"


def test_a_launchers_exception_is_not_a_script_under_another_name() -> None:
    found = (
        "/home/u/venv/bin/python3: can't open file '/home/u/gen.py': [Errno 2] No such file or"
        " directory\nTraceback (most recent call last):\n"
        '  File "/home/u/venv/bin/torchrun", line 8, in <module>\n'
        "    sys.exit(main())\n"
        '  File "/home/u/venv/lib/python3.9/site-packages/torch/distributed/run.py", line 794, in'
        " main\n    run(args)\n"
        "ValueError: nothing was started\n"
    )
    assert said(found) == "launch-file-missing"
