"""What a run outlived: earlier starts of its script, refused requests, a quick bar, a warning."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
SITE = "/opt/env/lib/python3.11/site-packages/"
HEAD = "Traceback (most recent call last):\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 1.00 GiB is free.\n"
)
LACKS_A_LIBRARY = "ImportError: libcupti.so.12: cannot open shared object file: No such file\n"
REFUSED = (
    "usage: tune.py [-h] [--bits BITS]\ntune.py: error: argument --bits: expected one argument\n"
)


def said(text: str) -> str:
    """The condition, or the outcome without one."""
    found = diagnose([Source(name="nohup.out", data=text.encode())], KNOWN)
    return found.causes[0].condition if found.outcome is Outcome.CAUSE else found.outcome.value


def died(line: int, message: str, script: str = "/home/me/tune.py") -> str:
    """The traceback of an exception that left a statement of a script."""
    return f'{HEAD}  File "{script}", line {line}, in <module>\n    work()\n{message}'


def loads(count: int) -> str:
    """Lines of a start that has not trained yet."""
    return "".join(f"layer {n} has 4096 weights\n" for n in range(count))


def test_the_last_death_of_a_script_counts() -> None:
    assert said(died(3, LACKS_A_LIBRARY)) == "cuda-runtime-lib-mismatch"
    assert said(died(3, LACKS_A_LIBRARY) + loads(30) + died(40, OOM)) == "gpu-oom"


#: What is above the frames of a module that `python -m` runs.
BY_NAME = "".join(
    f'  File "<frozen runpy>", line {line}, in {function}\n'
    for line, function in ((198, "_run_module_as_main"), (88, "_run_code"))
)
SPAWNED = (
    '  File "<string>", line 1, in <module>\n'
    '  File "/opt/env/lib/python3.11/multiprocessing/spawn.py", line 122, in spawn_main\n'
    "    exitcode = _main(fd, parent_sentinel)\n"
)


def below(frames: str, text: str) -> str:
    """A traceback that begins with further frames."""
    return text.replace(HEAD, HEAD + frames)


def test_a_module_that_is_run_by_its_name() -> None:
    again = died(3, LACKS_A_LIBRARY) + loads(30) + died(40, OOM)
    assert said(below(BY_NAME, again)) == "gpu-oom"
    # children of one process
    assert said(below(SPAWNED, again)) == "cuda-runtime-lib-mismatch"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(died(3, LACKS_A_LIBRARY) + loads(4) + died(40, OOM), id="right below it"),
        pytest.param(
            died(3, LACKS_A_LIBRARY) + loads(30) + died(40, OOM, "/home/me/eval.py"),
            id="the next script of a batch",
        ),
        pytest.param(
            "[2026-03-02 10:00:00,101] [INFO] [launch.py:164:main] dist_world_size=2\n"
            + died(3, LACKS_A_LIBRARY)
            + loads(30)
            + died(40, OOM),
            id="ranks",
        ),
    ],
)
def test_deaths_that_are_not_of_two_starts(text: str) -> None:
    assert said(text) == "cuda-runtime-lib-mismatch"


def test_a_step_of_one_task_that_is_started_again() -> None:
    exits = "srun: error: node7: {}: Exited with exit code 1\n"
    one = died(3, LACKS_A_LIBRARY) + exits.format("task 0") + loads(30) + died(40, OOM)
    assert said(one) == "gpu-oom"
    two = died(3, LACKS_A_LIBRARY) + exits.format("tasks 0-1") + loads(30) + died(40, OOM)
    assert said(two) == "cuda-runtime-lib-mismatch"


def test_an_interrupt_without_frames() -> None:
    text = died(3, LACKS_A_LIBRARY) + loads(30) + HEAD + "KeyboardInterrupt\n"
    assert said(text) == "cuda-runtime-lib-mismatch"


def test_options_that_are_refused_after_an_interrupt() -> None:
    stopped = died(12, "KeyboardInterrupt\n")
    assert said(stopped) == "interrupted-by-user"
    assert said(stopped + REFUSED) == "script-option-refused"
    assert said(died(12, OOM) + REFUSED) == "gpu-oom"


def through(package: str, name: str = "torch") -> str:
    """A script that does not find a module, and one that then runs through a package."""
    return (
        died(3, f"ModuleNotFoundError: No module named '{name}'\n")
        + "wandb: $ pip install wandb --upgrade\n"
        + f'{HEAD}  File "/home/me/train.py", line 68, in run\n    y = model(x)\n'
        + f'  File "{SITE}{package}/modules/conv.py", line 8, in forward\n    return f(x)\n'
        + "RuntimeError: Input type and weight type should be the same\n"
    )


def test_a_package_that_a_later_start_had() -> None:
    assert said(through("torch/nn")) == "user-code"
    assert said(through("timm/layers")) == "torch-missing"
    assert said(through("torch/nn", name="torch._six")) == "dependency-version-conflict"


def interrupted(frames: str) -> str:
    return f'{HEAD}  File "/home/me/tune.py", line 2, in <module>\n    import x\n{frames}KeyboardInterrupt\n'


def test_an_interrupt_while_modules_are_imported_ends_that_start() -> None:
    imports = f'  File "{SITE}transformers/__init__.py", line 8, in <module>\n    from . import y\n'
    assert said(interrupted(imports)) == "interrupted-by-user"
    assert said(interrupted(imports) + loads(20)) == "interrupted-by-user"
    assert said(interrupted(imports) + loads(90)) == "clean"


def test_what_a_run_had_buffered_is_printed_below_its_interrupt() -> None:
    works = f'  File "{SITE}torch/nn/functional.py", line 8, in linear\n    return f(x)\n'
    assert said(interrupted(works) + loads(90)) == "interrupted-by-user"


NO_DEVICE = HEAD + (
    '  File "/opt/env/bin/vllm", line 8, in <module>\n    sys.exit(main())\n'
    f'  File "{SITE}vllm/engine/arg_utils.py", line 1102, in create_engine_config\n    f()\n'
    "RuntimeError: Failed to infer device type\n"
)


def answers(status: str, path: str = "/v1/chat/completions") -> str:
    return f'INFO:     127.0.0.1:50000 - "POST {path} HTTP/1.1" {status}\n'


def test_a_server_that_still_answers_is_alive() -> None:
    assert said(NO_DEVICE) == "no-gpu-visible"
    assert said(NO_DEVICE + answers("200 OK") * 3) == "clean"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(answers("200 OK", "/health"), id="only a look whether it is there"),
        pytest.param(answers("200 OK") + answers("500 Internal Server Error"), id="it fails then"),
        pytest.param(answers("404 Not Found"), id="nothing there"),
    ],
)
def test_a_server_that_may_not_be_alive(text: str) -> None:
    assert said(NO_DEVICE + text) == "no-gpu-visible"


def test_a_failure_while_a_request_is_answered_may_be_of_the_engine() -> None:
    request = NO_DEVICE.replace("in <module>", "in create_chat_completion")
    assert said(request + answers("200 OK") * 3) == "no-gpu-visible"


def rejected(status: str) -> str:
    """Two requests that a server rejects, whose answers stand below both tracebacks."""
    one = (
        f'{HEAD}  File "{SITE}vllm/entrypoints/openai/serving_chat.py", line 186, in create\n'
        "    ) = await self._preprocess()\n"
        "ValueError: no chat template is set for this tokenizer\n"
    )
    return 2 * one + 2 * answers(status)


def test_requests_that_are_rejected_together() -> None:
    assert said(rejected("400 Bad Request")) == "clean"
    assert said(rejected("500 Internal Server Error")) == "unrecognised"


def test_a_bar_that_is_full_at_once_is_of_something_else() -> None:
    lists = "100%|##########| 1700/1700 [00:00<00:00, 85514.89it/s]\n"
    works = "".join(
        f"Processed prompts: {n // 17}%|#| {n}/1700 [0{n // 200}:09<09:07,  1.51s/it]\n"
        for n in range(200, 1701, 500)
    )
    assert said(died(9, OOM) + lists) == "gpu-oom"
    assert said(died(9, OOM) + lists + works) == "clean"


@pytest.mark.parametrize("level", ["I", "W"])
def test_what_tensorflow_notes_is_no_cause(level: str) -> None:
    note = (
        f"2026-11-02 09:14:07.310662: {level} external/local_tsl/tsl/cuda/cudart_stub.cc:31] Could "
        "not find cuda drivers on your machine, GPU will not be used.\n"
    )
    assert said(note) == "clean"
    failed = died(9, "RuntimeError: CUDA error: device kernel image is invalid\n")
    assert said(note + failed) == "gpu-arch-unsupported"


def test_weights_that_mmcv_leaves_out_are_a_warning() -> None:
    differs = (
        "size mismatch for head.weight: copying a param with shape torch.Size([81, 1024]) from "
        "checkpoint, the shape in current model is torch.Size([11, 1024]).\n"
    )
    warns = "2026-10-17 16:45:53,128 - mmdet - WARNING - The model and loaded state dict do not "
    stopped = died(12, "KeyboardInterrupt\n")
    assert said(f"{warns}match exactly\n\n{20 * differs}{stopped}") == "interrupted-by-user"
    raised = f"RuntimeError: Error(s) in loading state_dict for Net:\n\t{differs}"
    assert said(died(12, raised)) == "checkpoint-mismatch"
