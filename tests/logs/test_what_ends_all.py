"""What ends all processes of a run at once, and exceptions that a run outlived or passed on."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
LIMIT = (
    "slurmstepd: error: *** JOB 71 ON n3 CANCELLED AT 2026-02-03T04:05:06 DUE TO TIME LIMIT ***\n"
)
ENDED = "slurmstepd: error: *** STEP 71.2 ON n3 CANCELLED AT 2026-02-03T04:05:06 {}***\n"


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def said(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


def bars(first: int, last: int, head: str = "simulate") -> str:
    return "".join(
        f"{head}: {n // 10:3d}%|##   | {n}/1000 [00:{n % 60:02d}<09:00,  1.90it/s]\n"
        for n in range(first, last)
    )


def test_steps_that_slurm_ends_still_print_their_bars() -> None:
    """Several steps of a job write to one file: each prints until it is killed."""
    text = bars(200, 230) + LIMIT + bars(230, 240) + bars(20, 40)
    assert said(text) == "job-time-limit"
    assert said(bars(200, 230) + ENDED.format("DUE TO TIME LIMIT ") + bars(230, 240)) == (
        "job-time-limit"
    )


def test_a_job_that_goes_on_for_long_was_started_again() -> None:
    assert said(bars(200, 230) + LIMIT + bars(231, 700)) == "clean"


DRIVER = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/proj/sweep.py", line 80, in <module>\n'
    "    ray.get(results)\n"
    f'  File "{SITE}ray/_private/client_mode_hook.py", line 103, in wrapper\n'
    "    return func(*args, **kwargs)\n"
    f'  File "{SITE}ray/_private/worker.py", line 2755, in get\n'
    "    values, debugger_info = worker.get_objects(object_refs, timeout=timeout)\n"
    f'  File "{SITE}ray/_private/worker.py", line 882, in get_objects\n'
    "    ] = self.core_worker.get_objects(\n"
    "KeyboardInterrupt\n"
)
ACTOR = "\x1b[36m(fit pid=4711)\x1b[0m train"


def test_actors_print_what_they_had_buffered_below_the_interrupt_of_their_driver() -> None:
    text = bars(200, 230, ACTOR) + DRIVER + bars(230, 240, ACTOR)
    found = read(text)
    assert [cause.condition for cause in found.causes] == ["interrupted-by-user"]


def test_an_interrupt_that_is_no_drivers_is_outlived_by_progress() -> None:
    text = bars(200, 230, ACTOR) + DRIVER.replace("/ray/_private/", "/rays/") + bars(230, 240)
    assert said(text) == "clean"
    assert said(bars(200, 230, ACTOR) + DRIVER + bars(230, 700, ACTOR)) == "clean"


LOGGED = (
    "[ERROR] {0}.mid: [Errno 13] Permission denied: '/data/set/{0}.mid'\n"
    "Traceback (most recent call last):\n"
    '  File "/home/me/proj/flatten.py", line 110, in flatten\n'
    "    song.write(path)\n"
    "PermissionError: [Errno 13] Permission denied: '/data/set/{0}.mid'\n"
)
WORK = "".join(f"[INFO] flattened part {n} of the set\n" for n in range(1200))


def test_a_log_that_goes_on_for_long_below_its_last_failure_shows_none_that_ended_it() -> None:
    logged = "".join(LOGGED.format(f"song{n}") for n in range(3))
    found = read(WORK[:4000] + logged + WORK)
    assert found.outcome is Outcome.CLEAN
    assert "the last exception is at line" in found.summary
    assert said(WORK[:4000] + logged) == "path-not-writable"
    assert said(WORK[:4000] + logged + WORK[:2000]) == "path-not-writable"


def test_of_several_ranks_the_others_may_only_wait() -> None:
    memory = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/proj/train.py", line 11, in <module>\n'
        "    fit(model)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert said(WORK[:4000] + memory + WORK) == "clean"
    ranks = "n1:7:9 [0] NCCL INFO comm 0x55 rank 0 nranks 4 cudaDev 0 - Init COMPLETE\n"
    assert said(WORK[:4000] + ranks + memory + WORK) == "gpu-oom"


HANDLER = (
    "--- Logging error ---\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/env/lib/python3.11/logging/__init__.py", line 1113, in emit\n'
    "    self.flush()\n"
    "OSError: [Errno 5] Input/output error\n"
    "Call stack:\n"
    f'  File "{SITE}ipykernel/parentpoller.py", line 35, in run\n'
    '    get_logger().warning("Parent appears to have exited, shutting down.")\n'
    "Message: 'Parent appears to have exited, shutting down.'\n"
)


def test_an_ignored_traceback_counts_only_in_an_excerpt() -> None:
    assert said(HANDLER) == "storage-io-error"
    assert said("a result\n" * 60 + HANDLER) == "storage-io-error"
    assert not read("a result\n" * 150 + HANDLER).causes


LOOKED_UP = (
    "Traceback (most recent call last):\n"
    f'  File "{SITE}mmengine/config/config.py", line 107, in __getattr__\n'
    "    value = super().__getattr__(name)\n"
    f'  File "{SITE}addict/addict.py", line 67, in __getattr__\n'
    "    return self.__getitem__(item)\n"
    f'  File "{SITE}mmengine/config/config.py", line 103, in __missing__\n'
    "    raise KeyError(name)\n"
    "KeyError: 'warm_start'\n"
    "\nDuring handling of the above exception, another exception occurred:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/home/me/proj/run.py", line 64, in <module>\n'
    "    start(cfg.warm_start)\n"
    f'  File "{SITE}mmengine/config/config.py", line 111, in {{}}\n'
    "    raise AttributeError(f\"'{{self.__class__.__name__}}' object has no \"\n"
    "AttributeError: 'ConfigDict' object has no attribute 'warm_start'\n"
)


def test_who_looks_up_an_attribute_chose_its_name() -> None:
    found = read(LOOKED_UP.format("__getattr__"))
    assert found.outcome is Outcome.USER_CODE
    assert found.first_error is not None
    assert found.first_error.type == "AttributeError"
    assert read(LOOKED_UP.format("dump")).outcome is Outcome.UNRECOGNISED


FUSED = (
    "Traceback (most recent call last):\n"
    '  File "/home/me/proj/bench.py", line 13, in <module>\n'
    "    scripted(x)\n"
    f'  File "{SITE}torch/nn/modules/module.py", line 1065, in _call_impl\n'
    "    return forward_call(*input, **kwargs)\n"
    'RuntimeError: {}(18): error: expected a ")"\n'
)


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        pytest.param("default_program", Outcome.UNRECOGNISED, id="written by a fuser"),
        pytest.param("my_kernel.cu", Outcome.USER_CODE, id="with a name"),
    ],
)
def test_code_that_a_fuser_wrote_is_not_the_scripts(program: str, outcome: Outcome) -> None:
    assert read(FUSED.format(program)).outcome is outcome


def test_a_build_whose_beginning_is_cut_off_is_known_by_its_end() -> None:
    build = "ninja: build stopped: subcommand failed.\nsubprocess.CalledProcessError: Command '{}' returned non-zero exit status 1.\n"
    assert said(build.format("['ninja', '-v', '-j', '4']")) == "cpu-adam-unbuilt"
    missing = (
        "/home/me/csrc/gemm.h:6:10: fatal error: cuda_profiler_api.h: No such file or directory\n"
    )
    assert said(missing + build.format("['ninja', '-v']")) == "cuda-toolkit-incomplete"
