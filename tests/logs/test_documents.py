"""A document that quotes errors shows no failure; a report that has the shape of one does."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.logs import Source, diagnose, signatures_of
from dsdoctor.logs.documents import is_document, shape_of
from dsdoctor.model.diagnosis import Outcome

KNOWN = signatures_of(packs.load(builtin_only=True))
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB."
GUIDE = f"""# Running on small GPUs

This page lists what to change before a large model fits on one card of a workstation.

## Before the first start

Choose the smallest batch that keeps every card of the machine busy during a step.
The length of a sequence decides over the activations, so measure it on real data first.

## Memory

The allocator prints the following words once nothing more can be reserved on a card.

```
{OOM}
```

Offloading the optimizer makes room, and costs a copy over the bus in every step.

## Speed

A larger micro-batch is faster as long as the kernels are not yet limited by memory.
Gradient accumulation keeps the global batch the same while the micro-batch is lowered.
"""
TRACED = f"""```
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/lab/train.py", line 31, in main
[rank0]:     model.cuda()
[rank0]: {OOM}
```"""
AS_A_BROWSER_SHOWS_IT = {
    "# Running on small GPUs": "Running Large Models On Small GPUs",
    "## Before the first start": "Step 1: Smaller Batches",
    "## Memory": "Error Symptoms",
    "## Speed": "Step 2: Faster Runs",
    "```": "",
}
PLAIN = "\n\n".join(AS_A_BROWSER_SHOWS_IT.get(line, line) for line in GUIDE.splitlines() if line)


def named(text: str) -> list[str]:
    found = diagnose([Source("text", data=text.encode())], KNOWN)
    return [cause.condition for cause in found.causes]


def test_a_guide_only_quotes_an_error() -> None:
    assert named(GUIDE) == []


def test_an_exception_that_a_guide_quotes_is_no_failure() -> None:
    text = GUIDE.replace(OOM, "ValueError: the batch of this example is empty")
    assert diagnose([Source("text", data=text.encode())], KNOWN).outcome is Outcome.CLEAN


def test_a_guide_whose_headings_lost_their_marks_only_quotes_an_error() -> None:
    assert "#" not in PLAIN
    assert named(PLAIN) == []


def test_a_guide_in_restructured_text_only_quotes_an_error() -> None:
    lines = [
        f"{line.lstrip('# ')}\n{'=' * 20}" if line.startswith("#") else line
        for line in GUIDE.splitlines()
    ]
    assert named("\n".join(lines)) == []


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(OOM, id="the error alone"),
        pytest.param(f"# Out of memory\n\n{OOM}\n", id="a title and the error"),
        pytest.param(GUIDE.replace("```\n" + OOM + "\n```", TRACED), id="output of a run"),
        pytest.param(
            GUIDE + "\nI followed this page, and my run with ZeRO-2 still ends with that message.\n"
            "Is there anything that I can try before I rent a card with more memory?\n",
            id="its author speaks of himself",
        ),
        pytest.param(
            GUIDE.replace("## Memory", "## Actual behavior").replace("## Speed", "## System info"),
            id="the form of an issue",
        ),
    ],
)
def test_a_report_with_headings_and_sentences_has_its_cause(report: str) -> None:
    assert named(report) == ["gpu-oom"]


def test_a_long_document_quotes_whatever_it_shows() -> None:
    text = GUIDE.replace("```\n" + OOM + "\n```", TRACED)
    assert named("\n".join([text, *[GUIDE] * 12])) == []


def test_a_log_with_rules_between_its_parts_is_no_document() -> None:
    lines = []
    for step in range(12):
        lines += ["=" * 40, f"[2026-01-01 10:00:{step:02}] step {step} loss 1.5", ""]
    assert named("\n".join([*lines, OOM])) == ["gpu-oom"]
    assert not is_document(shape_of(lines))


ARTICLE = f"""Why a card runs full

The allocator says the following as soon as a reservation does not fit any more:

{OOM}

A common reason is a batch that is too large. It usually helps to halve it.
The message means that the cache was emptied before, without making enough room.
"""
GLOSSARY = """States of a job

  - COMPLETED: every step of the job has ended with the status that it should have.
  - OUT_OF_MEMORY: a process wanted more than the job was given, so the kernel ended it.
  - TIMEOUT: the job was still running when the time that it had asked for was over.
"""
LESSON = f"""Memory of a card

Why this matters
A batch that does not fit ends the run before its first step.

Explanation
The allocator reserves blocks, and says this when the next one does not fit:
{OOM}

Common gotcha
The blocks of another process count as well.
"""
CHINESE = f"""显存不足的常见原因

{OOM}

通常是批次过大，建议先减小批次再打开重计算。
"""
CHINESE_SENTENCES = f"""关于显存的说明

训练过程中每一层的激活值都要保留到反向传播结束为止。
{OOM}
当批次超过显卡的容量时，分配器就会给出上面这一行错误信息。
最简单的解决方案是把批次减半，再用梯度累积补回全局批次的大小。
本文的其余部分比较了这些设置对训练速度和显存占用的影响。
"""


#: A variable that is set to a level of a logger is no line of that logger.
COMMAND = f"""{OOM}
Out of memory errors are usually caused by a batch that is larger than the card.
The root cause is commonly the length of the sequences, so measure that first of all.
A smaller batch typically helps, and gradient accumulation keeps the global batch the same.
Another allocator setting may help too, but only where the memory of the card is fragmented.
export NCCL_DEBUG=INFO && export NCCL_DEBUG_SUBSYS=ALL && torchrun --nproc_per_node=8 train.py
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ARTICLE, id="an article"),
        pytest.param(GLOSSARY, id="a glossary"),
        pytest.param(LESSON, id="a lesson"),
        pytest.param(CHINESE, id="a note in Chinese"),
        pytest.param(CHINESE_SENTENCES, id="sentences in Chinese"),
        pytest.param(COMMAND, id="a command below sentences"),
    ],
)
def test_a_short_text_that_explains_an_error_only_quotes_it(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("I have tried what the usual guides say.\n", id="its author speaks"),
        pytest.param("Any idea what that means?\n", id="it asks for help"),
        pytest.param("[2026-01-01 10:00:00] step 7 loss 1.5\n", id="output of a run"),
        pytest.param('```\n  File "/home/lab/train.py", line 3\n```\n', id="a quoted stack"),
    ],
)
def test_an_explanation_below_a_report_takes_nothing_from_it(more: str) -> None:
    assert named(ARTICLE + more) == ["gpu-oom"]


def test_a_list_of_related_errors_shows_none_of_them() -> None:
    listed = f"- {OOM}\n- RuntimeError: CUDA error: no kernel image is available\n"
    assert named(f"Other errors\n{listed}") == []
    assert named(f"What I get\n- {OOM}\n") == ["gpu-oom"]


def test_what_products_explain_below_their_errors_makes_no_document() -> None:
    text = f"{OOM} This usually means that fragments are left, see the solutions in the manual.\n"
    assert named(text) == ["gpu-oom"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            "**How to tell:** the loader prints CUDA Setup failed despite GPU being available",
            id="a bold heading",
        ),
        pytest.param(
            "2. **Look at the loss**: once it becomes NaN, loss is nan in every step after it",
            id="a numbered step",
        ),
        pytest.param(
            '//   printf("ibv_poll_cq() failed with error %d\\n", status);', id="a comment in C"
        ),
        pytest.param("$ grep 'CUDA out of memory' train.log", id="a search in a log"),
        pytest.param(
            "CUDA out of memory errors stop a run and waste the hours before it",
            id="a sentence about an error",
        ),
    ],
)
def test_sentences_and_commands_of_a_document_name_nothing(line: str) -> None:
    assert named(f"{line}\n") == []


def test_an_exception_in_bold_is_reported() -> None:
    assert named(f"**What I get:** {OOM}\n") == ["gpu-oom"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('+            and state.reason == "OOMKilled":', id="an added line of a diff"),
        pytest.param('    if state.reason == "OOMKilled":', id="a line of code"),
        pytest.param(
            "If a worker crashed because it was OOMKilled, its pod is started anew",
            id="a condition in a sentence",
        ),
        pytest.param(
            "Set the address on each node, otherwise ranks fail to connect with 'Address already in use'",
            id="an instruction",
        ),
    ],
)
def test_code_and_conditions_that_name_a_failure_report_none(line: str) -> None:
    assert named(f"{line}\n") == []


def test_a_shell_reports_the_death_of_its_child() -> None:
    for what in ("Segmentation fault      (core dumped)", "Aborted                 (core dumped)"):
        assert named(f"/jobs/run.sh: line 12: 4711 {what} python train.py\n") == ["native-crash"]


def test_an_argument_that_accelerate_refuses_is_told_without_the_name_of_its_class() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/x/site-packages/transformers/trainer.py", '
        "line 4127, in create_accelerator_and_postprocess\n    self.accelerator = Accelerator(\n"
        "TypeError: __init__() got an unexpected keyword argument 'even_batches'\n"
    )
    assert named(text) == ["transformers-deepspeed-incompatible"]
    assert named(text.replace("self.accelerator = Accelerator(", "Net(")) == []


def test_rays_wrapper_of_the_gpu_s_exception_is_that_exception() -> None:
    text = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Actor.load() (pid=7, ip=10.0.0.2)\n"
    assert named(text) == ["gpu-oom"]


def test_a_log_with_headings_of_its_own_is_not_a_document() -> None:
    """Lightning scripts print rules and headings; warnings of libraries are sentences."""
    heads = "".join(f"#### Part {n} ####\n{'-' * 40}\n" for n in range(4))
    warning = (
        "/e/site-packages/x/y.py:70: UserWarning: You passed a loader that has no step of its own,"
        " so that loop is skipped.\n"
    )
    end = (
        "/e/site-packages/pytorch_lightning/trainer/call.py:54: UserWarning: Detected"
        " KeyboardInterrupt, attempting graceful shutdown...\n"
    )
    assert named(heads + warning * 8 + end) == ["interrupted-by-user"]


PAGES = {
    "ja": f"""深層学習の現場では、次のようなエラーメッセージに出会うことがよくあるものです。
RuntimeError: {OOM.partition(": ")[2]}
このメッセージは、必要なメモリをGPUの上に確保できなかったことを意味します。
まず、バッチサイズを小さくして、使われるメモリの量を減らすことが対策になります。
この記事では、勾配の累積と混合精度を使って同じ結果を得る手順を順番に説明します。
""",
    "ru": f"""Тот, кто обучает большие модели, рано или поздно видит такое сообщение об ошибке:
RuntimeError: {OOM.partition(": ")[2]}
Эта ошибка возникает, когда на видеокарте не остаётся памяти для следующего тензора.
Обычно помогает уменьшить размер пакета и включить накопление градиентов на каждом шаге.
Если это не помогает, причина часто в другой программе, которая занимает ту же карту.
""",
    "ko": f"""큰 모델을 작은 그래픽 카드에서 학습시키면 다음과 같은 메시지를 자주 보게 됩니다.
RuntimeError: {OOM.partition(": ")[2]}
이 메시지는 다음 텐서를 위한 메모리를 카드에 더 이상 할당할 수 없음을 의미합니다.
가장 일반적인 원인은 한 번에 처리하는 배치의 크기가 너무 크게 설정된 것입니다.
배치 크기를 줄이고 기울기 누적을 사용하는 것이 가장 간단한 해결 방법입니다.
""",
}
ASKED = {
    "ja": "同じ設定で実行しても毎回このエラーが発生します。解決する方法を教えてください。\n",
    "ru": "Подскажите, пожалуйста, что с этим делать: у меня две видеокарты по 24 гигабайта.\n",
    "ko": "같은 설정으로 실행해도 항상 이렇게 됩니다. 해결하는 방법을 알려 주시면 감사합니다.\n",
}


@pytest.mark.parametrize("language", sorted(PAGES))
def test_a_page_in_another_language_only_quotes_an_error(language: str) -> None:
    assert named(PAGES[language]) == []


@pytest.mark.parametrize("language", sorted(PAGES))
def test_somebody_who_asks_in_another_language_has_the_error(language: str) -> None:
    assert named(PAGES[language] + ASKED[language]) == ["gpu-oom"]
    assert named(f"{PAGES[language]}{TRACED}") == ["gpu-oom"]


@pytest.mark.parametrize(
    "question",
    [
        "このエラーの原因は何でしょうか。解決する対策はありますか?",
        "Почему возникает эта ошибка, как исправить причину?",
        "이 오류의 원인이 무엇인가요? 해결하는 방법이 있을까요?",
    ],
)
def test_a_question_explains_nothing(question: str) -> None:
    assert named(f"RuntimeError: {OOM.partition(': ')[2]}\n{question}\n") == ["gpu-oom"]


@pytest.mark.parametrize("language", sorted(PAGES))
def test_sentences_in_other_languages_count(language: str) -> None:
    assert shape_of(PAGES[language].splitlines()).sentences == PAGES[language].count("\n") - 1


@pytest.mark.parametrize(
    "line", ["学習を開始します", "Загрузка модели завершена", "모델 학습을 시작합니다"]
)
def test_a_few_words_of_another_language_are_no_sentence(line: str) -> None:
    assert shape_of([line]).sentences == 0
