"""What shells, IDEs, macOS and people say of a process that ended, in several languages."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.model.diagnosis import Diagnosis, Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
BEGUN = "loading model\n***** Running training *****\n  0%|          | 0/1200 [00:00<?, ?it/s]\n"


def read(text: str) -> Diagnosis:
    return diagnose([Source("log", data=f"{BEGUN}{text}\n".encode())], KNOWN)


def told(text: str) -> Diagnosis:
    return diagnose([Source("log", data=text.encode())], KNOWN)


def cause(text: str) -> str:
    found = read(text)
    return found.causes[0].condition if found.causes else found.outcome.value


@pytest.mark.parametrize(
    "said",
    [
        "[1]+  Segmentation fault      (core dumped) python train.py",
        "zsh: segmentation fault  python train.py",
        "zsh: abort (core dumped)  python train.py",
        "zsh: illegal hardware instruction  python train.py",
        "zsh: floating point exception  python train.py",
        "zsh: trace trap  python train.py",
        "[1]    1234 segmentation fault  python train.py",
        pytest.param(
            "[1]  + 1234 illegal hardware instruction (core dumped)  python train.py",
            id="zsh-job-ill",
        ),
        pytest.param(
            "fish: Job 1, 'python train.py' terminated by signal SIGSEGV (Address boundary error)",
            id="fish-job-segv",
        ),
        pytest.param(
            "fish: 'python train.py' terminated by signal SIGABRT (Abort)", id="fish-abrt"
        ),
        "Aborted (core dumped)",
        "Floating point exception (core dumped)",
        pytest.param(
            "run.sh: line 3: 4711 Trace/breakpoint trap   (core dumped) python train.py",
            id="bash-trap",
        ),
        "run.sh: line 3:  4711 Segmentation fault: 11  python train.py",
        "Abort trap: 6",
        "Trace/BPT trap: 5",
        "已放弃 (核心已转储)",
        "段错误（核心已转储）",
        "浮点数例外 (核心已转储)",
        "程式記憶體區段錯誤 (核心已傾印)",
        "Abgebrochen (Speicherabzug geschrieben)",
        "Violación de segmento (`core' generado)",
        "Ошибка сегментирования (образ памяти сброшен на диск)",
        "세그멘테이션 오류 (코어 덤프됨)",
        "进程已结束,退出代码-1073741819 (0xC0000005)",
        "进程已结束，退出代码为 -1073740791 (0xC0000409)",
        pytest.param(
            "Assertion failed: (n > 0), function read, file io.cpp, line 288.", id="macos-assert"
        ),
    ],
)
def test_a_crash_is_named_whoever_reports_it(said: str) -> None:
    assert cause(said) == "native-crash"


@pytest.mark.parametrize(
    "said",
    [
        "[1]+  Killed                  python train.py",
        "zsh: killed     python train.py",
        "[1]    1234 killed     python train.py",
        pytest.param(
            "fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)",
            id="fish-kill",
        ),
        "Killed: 9",
        "已杀死",
        "run.sh：行3： 4711 已杀死               python train.py",
        "Getötet",
        "強制結束",
        "进程已结束，退出代码 137 (被信号 9:SIGKILL 中断)",
    ],
)
def test_a_process_that_was_killed_is_named_whoever_reports_it(said: str) -> None:
    assert cause(said) == "host-oom-killed"


@pytest.mark.parametrize(
    "said",
    [
        "[1]+  Exit 1                  python train.py",
        "[1]  + exit 1     python train.py",
        "[1]+  Terminated              python train.py",
        "zsh: terminated  python train.py",
        "Aborted",
        "Terminated: 15",
        "已终止",
        "进程已结束,退出代码1",
        pytest.param(
            "W0512 torch/api.py:851] Sending process 1234 closing signal SIGTERM", id="torchrun"
        ),
        "note: This error originates from a subprocess, and more",
        pytest.param(
            "Canceled future for execute_request message before replies were done", id="jupyter"
        ),
        "Build step 'Execute shell' marked build as failure",
    ],
)
def test_other_ends_are_not_clean(said: str) -> None:
    assert cause(said) == Outcome.UNRECOGNISED.value


@pytest.mark.parametrize(
    ("said", "condition"),
    [
        pytest.param(
            "libc++abi: terminating due to uncaught exception of type std::runtime_error: boom",
            "native-crash",
            id="libcxxabi",
        ),
        pytest.param(
            "terminate called after throwing an instance of 'E'\n  what():  boom\nAborted (core dumped)",
            "native-crash",
            id="terminate",
        ),
        pytest.param(
            "Connection to gpu1 closed by remote host.\nConnection to gpu1 closed.",
            "terminal-closed",
            id="ssh",
        ),
    ],
)
def test_ends_that_say_what_happened(said: str, condition: str) -> None:
    assert cause(said) == condition


@pytest.mark.parametrize(
    "said",
    [
        "[1]+  Done                    python train.py",
        "[1]  + 1234 done       python train.py",
        "[1] 4711",
        "[1]+  Exit 0                  python train.py",
        "进程已结束,退出代码0",
        "进程已结束，退出代码为 0",
        "Connection to gpu1 closed.",
        "the killed job is not ours",
        "we aborted nothing",
        "'已放弃重试'",
    ],
)
def test_the_states_of_jobs_that_ended_well_are_clean(said: str) -> None:
    assert cause(said) == Outcome.CLEAN.value


def test_the_traceback_above_what_a_shell_says_is_the_cause() -> None:
    own = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    x['lr']\n"
    for end in ("Aborted (core dumped)", "[1]+  Exit 1                  python a.py"):
        assert cause(f"{own}KeyError: 'lr'\n{end}") == Outcome.USER_CODE.value


def test_a_sentence_that_names_a_mistake_of_the_script_says_whose_it_is() -> None:
    own = "RuntimeError: CUDA error: device-side assert triggered"
    found = told(f"why always raise this error: {own}\nI looked at my labels, and they are fine.\n")
    assert found.outcome is Outcome.USER_CODE
    assert found.summary == f"the text tells of a mistake in the script: {own}"
    sizes = "The size of tensor a (4) must match the size of tensor b (8)"
    asked = f"Training on 4 GPUs crashes with 'RuntimeError: {sizes}'\n\nI use the script of the README.\n"
    assert told(asked).outcome is Outcome.USER_CODE
    for other in ("RuntimeError: something else", "KeyError: 'lr'"):
        text = f"why always raise this error: {other}\nI looked at my labels, and they are fine.\n"
        assert told(text).outcome is not Outcome.USER_CODE
    two = f"why do I get ZorkError: no zork, or {own}\nI looked at my labels, and they are fine.\n"
    assert told(two).outcome is not Outcome.USER_CODE


def test_a_tunnel_or_a_monitor_beside_the_run_is_not_the_run() -> None:
    before, after = "epoch 1 step 100 loss: 1.2\n", "\nepoch 1 step 200 loss: 0.9\n"
    for row in (
        "[1]+  Killed                  ssh -N -L 6006:localhost:6006 node3",
        "run.sh: line 3: 4711 Killed                  watch nvidia-smi",
    ):
        assert cause(before + row + after) == Outcome.CLEAN.value
        assert cause(before + row.replace("ssh -N", "python").replace("watch", "python")) == (
            "host-oom-killed"
        )
