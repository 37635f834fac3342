"""Exceptions that a program catches and prints, and those of a script's configuration and data."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.12/site-packages/"
RAY = "\x1b[36m({name} pid={pid})\x1b[0m "
BAR = (
    RAY.format(name="TaskRunner", pid=3)
    + "\rTraining Progress:   0%| | {n}/900 [1:0{n}<9:00:00, 1065.97s/it]\n"
)
LOGGED = (
    "ERROR:2026-03-26 21:59:41,526:Traceback (most recent call last):\n"
    '  File "/home/me/agent.py", line 31, in act\n    x, y = parse(text)\n'
    "TypeError: cannot unpack non-iterable NoneType object\n"
)
OUTPUT = "".join(f"answer {n} of the model\n" for n in range(6))


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def of_actor(text: str, pid: int = 8) -> str:
    head = RAY.format(name="LoopWorker", pid=pid)
    return "".join(f"{head}{line}\n" for line in text.splitlines())


def caught(times: int, bar: str = BAR, rest: str = OUTPUT, to: int = 2) -> str:
    """A run that prints the same exception `times` times in each of two steps, and goes on."""
    once = of_actor(LOGGED * times + OUTPUT)
    return once + bar.format(n=1) + once + bar.format(n=to) + of_actor(LOGGED + rest)


def test_an_exception_that_actors_print_in_every_step_ends_no_run() -> None:
    assert read(caught(4)).outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(caught(1), id="it was printed rarely"),
        pytest.param(caught(4, rest="one line\n"), id="few lines follow"),
        pytest.param(
            caught(4, BAR.replace("TaskRunner", "Worker"), to=9), id="a bar of one worker advances"
        ),
        pytest.param(
            caught(4) + of_actor("ValueError: another one\n" + OUTPUT), id="another exception last"
        ),
        pytest.param(
            f"{caught(4)}ray.exceptions.RayTaskError(TypeError): ray::run() (pid=3)\n{OUTPUT}",
            id="it reaches the driver",
        ),
    ],
)
def test_one_that_may_have_ended_the_run_is_told(text: str) -> None:
    assert read(text).outcome is not Outcome.CLEAN


RUN = (
    'Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_main\n'
    '  File "<frozen runpy>", line 88, in _run_code\n'
    f'  File "{SITE}verl/trainer/main_ppo.py", line 300, in <module>\n    main()\n'
)


def test_a_key_that_a_configuration_lacks_is_the_scripts_whoever_reads_it() -> None:
    found = read(
        f'{RUN}  File "{SITE}omegaconf/dictconfig.py", line 480, in _get_node\n    raise x\n'
        "omegaconf.errors.ConfigAttributeError: Missing key enable\n    full_key: critic.enable\n"
    )
    assert found.outcome is Outcome.USER_CODE


def test_a_package_that_does_not_import_another_is_not_the_scripts() -> None:
    found = read(
        'Traceback (most recent call last):\n  File "/home/me/t.py", line 1, in <module>\n    import a\n'
        f'  File "{SITE}a/__init__.py", line 3, in <module>\n    conf.x\n'
        f'  File "{SITE}omegaconf/dictconfig.py", line 480, in _get_node\n    raise x\n'
        "omegaconf.errors.ConfigAttributeError: Missing key enable\n"
    )
    assert found.outcome is Outcome.UNRECOGNISED


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        pytest.param("_default_compute_score", Outcome.USER_CODE, id="verl 0.1"),
        pytest.param("default_compute_score", Outcome.USER_CODE, id="later releases"),
        pytest.param("compute_advantage", Outcome.UNRECOGNISED, id="another function"),
    ],
)
def test_a_reward_that_verl_does_not_know_is_named_by_the_data(
    function: str, outcome: Outcome
) -> None:
    found = read(
        f'{RUN}  File "{SITE}verl/utils/reward_score/__init__.py", line 37, in {function}\n'
        "    raise NotImplementedError\nNotImplementedError\n"
    )
    assert found.outcome is outcome
    assert ("about the script's data" in found.summary) is (outcome is Outcome.USER_CODE)


def test_the_exception_that_torch_compile_announces_is_shown_with_it() -> None:
    head = f'Traceback (most recent call last):\n  File "{SITE}torch/_inductor/codecache.py", line 7, in result\n'
    found = read(
        f"{head}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
        "LoweringError: no rule\n\nSet TORCH_LOGS\n"
    )
    assert found.summary.endswith("raised: LoweringError: no rule")
    mixed = read(
        f"{head}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
        "Traceback (most recent call last):\n"
    )
    assert mixed.summary.endswith("raised:")


def test_the_module_of_a_bare_error_is_shown() -> None:
    found = read(
        'Traceback (most recent call last):\n  File "/usr/lib/python3.11/base64.py", line 7, in d\n'
        "binascii.Error: Incorrect padding\n"
    )
    assert found.first_error is not None
    assert found.first_error.type == "binascii.Error"


def test_a_start_that_was_refused_is_not_the_first_error_of_the_next() -> None:
    found = read(
        "usage: t.py [-h]\nt.py: error: unrecognized arguments: --lr\nusing cuda\n"
        'Traceback (most recent call last):\n  File "/home/me/t.py", line 9, in <module>\n    main()\n'
        f'  File "{SITE}torch/nn/functional.py", line 7, in relu\n    x = y\n'
        "RuntimeError: CUDA out of memory. Tried to allocate 472.00 MiB (GPU 0; 15.75 GiB total capacity)\n"
    )
    assert [one.condition for one in found.causes] == ["gpu-oom"]
    assert found.first_error is not None
    assert found.first_error.type == "RuntimeError"


def test_a_gpu_without_memory_for_a_process_is_in_use_by_others() -> None:
    head = 'Traceback (most recent call last):\n  File "/home/me/t.py", line 9, in <module>\n    main()\n'
    error = "RuntimeError: CUDA error: out of memory\n"
    device = (
        f'  File "{SITE}torch/cuda/__init__.py", line 408, in set_device\n'
        "    torch._C._cuda_setDevice(device)\n"
    )
    [one] = read(head + device + error).causes
    assert one.condition == "gpu-oom"
    assert "nvidia-smi" in one.hint
    [later] = read(f'{head}  File "{SITE}torch/nn/x.py", line 7, in step\n    y\n{error}').causes
    assert "nvidia-smi" not in later.hint


def test_triton_needs_ldconfig() -> None:
    text = (
        f'Traceback (most recent call last):\n  File "{SITE}triton/common/build.py", line 21, in '
        "libcuda_dirs\n    libs = subprocess.check_output()\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'ldconfig'\n"
    )
    [one] = read(text).causes
    assert one.condition == "triton-unusable"
    assert "/sbin" in one.hint
    assert read(text.replace(f"{SITE}triton/common", "/home/me")).causes == ()


RANK_1 = (
    "[rank1]: Traceback (most recent call last):\n"
    '[rank1]:   File "/home/me/train.py", line 9, in <module>\n'
    "[rank1]: KeyError: 'labels'\n"
)
LOST = (
    "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer"
    " [127.0.0.1]:1433\n"
)
REPORT = (
    "E0112 10:00:00.000000 21 torch/distributed/elastic/multiprocessing/api.py:869] failed"
    " (exitcode: 1) local_rank: 1 (pid: 25) of binary: /opt/env/bin/python\n"
    "Root Cause (first observed failure):\n[0]:\n  time      : 2026-01-12_10:00:00\n"
    "  host      : n1\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 25)\n"
)


@pytest.mark.parametrize(
    ("between", "outcome"),
    [
        pytest.param("", Outcome.USER_CODE, id="the bar of another rank advances once more"),
        pytest.param("a line of the run\n" * 300, Outcome.UNRECOGNISED, id="long before the end"),
    ],
)
def test_the_rank_that_the_launcher_names(between: str, outcome: Outcome) -> None:
    """Its exception counts though others advanced after it, unless it was long outlived."""
    bars = [f"\r {n}%|##| {n}/90 [00:0{n}<09:00, 1.00s/it]\n" for n in range(1, 9)]
    found = read("".join(bars[:4]) + RANK_1 + "".join(bars[4:]) + between + LOST + REPORT)
    assert found.outcome is outcome
