"""Reports in Chinese: the catalogue follows the source, and programs still get English."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from dsdoctor import language, packs
from dsdoctor.cli import main, smoke
from dsdoctor.model.finding import fail
from dsdoctor.model.report import Report
from dsdoctor.model.smoke import SmokeCause, SmokeReport
from dsdoctor.report import text
from dsdoctor.report.wrap import columns_of, wrap
from tests.html import samples
from tests.run.support import record, run

REGISTRY = packs.load(builtin_only=True)
PO = Path(inspect.getfile(importlib.import_module("dsdoctor_checks"))).parent
PO = PO / "_locale" / "zh" / "LC_MESSAGES" / "dsdoctor_checks.po"
ENTRIES = list(language.entries(PO.read_text(encoding="utf-8")))
CODE = re.compile(r"`[^`]*`")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


#: Calls and names whose words no warning or failure of a check contains.
NOT_ASKED = (
    "ok",
    "skip",
    "Signature",
    "Condition",
    "pip",
    "signature",
    "TracebackRule",
    "traceback_rule",
)
NOT_SAID = ("SIGNATURES", "_PATTERN", "_EXAMPLES", "PLACES")


def _templates(module: str) -> set[str]:
    """Every text of a module; the fields of a formatted one in braces, as they are written."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    return {text for node in ast.walk(tree) for text in _templates_of(node)}


def _templates_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if not isinstance(node, ast.JoinedStr):
        return []
    parts = [
        str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    ]
    return ["".join(parts)]


@pytest.mark.parametrize("name", sorted({condition for condition, _, _ in ENTRIES}))
def test_what_is_translated_is_in_the_source(name: str) -> None:
    unit = REGISTRY.find(name)
    assert unit is not None
    own = [row for row in ENTRIES if row[0] == name]
    known = _templates(unit.place)
    for shared in (
        "_util",
        "_amd",
        "cuda._ops",
        "nccl._settings",
        "config._parameters",
        "config._batch_equation",
        "config._engine_rules",
        "_killed",
        "storage._util",
    ):
        known |= _templates(f"dsdoctor_checks.{shared}")
    for module in (
        "dsdoctor.hostfile",
        "dsdoctor.probes.storage",
        "dsdoctor.model.ranks",
    ):  # their words reach a message
        known |= _templates(module)
    known |= {unit.title, unit.hint, *(signature.hint for signature in unit.signatures)}
    known |= {signature.message for signature in unit.signatures}
    assert [english for _, english, _ in own if english not in known] == []
    assert len({english for _, english, _ in own}) == len(own)
    translated = {english for _, english, _ in own}
    assert {unit.title, *filter(None, [unit.hint])} <= translated, "title and hint of its page"
    for _, english, chinese in own:
        for pattern in (language.FIELD, CODE):
            assert Counter(pattern.findall(english)) == Counter(pattern.findall(chinese)), english
        assert re.search("[\u4e00-\u9fff]", chinese), english


#: Words of a check that stay English: they are compared, run, or reach only a skip. Not asked for are
#: also what `skip` and `ok` say.
ENGLISH = {
    ("bf16-unsupported", "no config was passed"),
    ("bf16-unsupported", "the config does not enable bf16"),
    ("disk-full", "disk of the profile"),
    ("disk-full", "mounted file system"),
    ("gpu-busy", "memory use"),
    ("hostfile-or-ssh-problem", "is already on line"),
    ("jit-build-ninja-missing", "conda activate {patient.prefix}"),
    ("no-gpu-visible", "Apple MPS or the CPU"),
    ("weights-file-corrupt", "git-lfs pointer"),
    ("weights-file-corrupt", "no checkpoint file"),
}


def _said(module: str) -> set[str]:
    """Words of a module that reach a finding that warns or fails."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    left: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            first = node.body[0]
            left |= {id(first.value)} if isinstance(first, ast.Expr) else set()
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in NOT_ASKED:
            left |= {id(part) for part in ast.walk(node)}
        elif isinstance(node, ast.JoinedStr):
            left |= {id(part) for part in node.values}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in NOT_SAID:
            left |= {id(part) for part in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in left or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        for words in _templates_of(node):
            bare = CODE.sub("", language.FIELD.sub("", words))
            if re.search(r"[a-z]{2,} [a-z]{2,}", bare) and "\n" not in words:
                found.add(words)
    return found


@pytest.mark.parametrize("name", sorted({condition for condition, _, _ in ENTRIES}))
def test_what_a_check_of_the_forty_says_is_translated(name: str) -> None:
    unit = REGISTRY.find(name)
    assert unit is not None
    own = {english for condition, english, _ in ENTRIES if condition == name}
    english = {text for text in _said(unit.place) if text not in own}
    assert english == {text for condition, text in ENGLISH if condition == name}


def test_what_a_diagnosis_of_the_forty_says_is_translated() -> None:
    english = {
        (unit.condition.name, words)
        for unit in REGISTRY
        for signature in unit.signatures
        for words in (signature.message, signature.hint)
        if words and unit.condition.name in {name for name, _, _ in ENTRIES}
    }
    assert english - {(name, words) for name, words, _ in ENTRIES} == set()


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        pytest.param(
            "gpu-busy",
            "4096 of 81559 MiB (5%) of GPU 0 (NVIDIA H100 80GB HBM3) are in use (pid 7), but the job expects the GPU to be free",
            "GPU 0 (NVIDIA H100 80GB HBM3) 的 81559 MiB 中有 4096 MiB（5%）被占用（进程 7），而作业需要空闲的 GPU",
            id="memory in use by processes",
        ),
        pytest.param(
            "shm-too-small",
            "`/dev/shm` is 64 MiB in size, but a job of 2 ranks needs 512 MiB or more",
            "`/dev/shm` 的大小为 64 MiB，但 2 个 rank 的作业至少需要 512 MiB",
            id="a shared memory that is too small",
        ),
        pytest.param(
            "port-in-use",
            "port 29500 of `n1` is in use, but it is the master port of this command",
            "`n1` 的端口 29500 已被占用，而它是该命令的 master 端口",
            id="a port in use",
        ),
        pytest.param(
            "hostfile-or-ssh-problem",
            "line 2 of `hosts`, `a slots=2`, is rejected: `a` is already on line 1",
            "`hosts` 第 2 行 `a slots=2` 无效：`a` 已在第 1 行出现",
            id="a line of a hostfile",
        ),
        pytest.param(
            "ds-config-unsupported-combination",
            "`fp16.enabled` (line 1) and `bf16.enabled` (line 2) are both true, but only one precision can be enabled",
            "`fp16.enabled` (line 1) and `bf16.enabled` (line 2) 都为 true，但只能启用一种精度",
            id="two settings that are mutually exclusive",
        ),
        pytest.param(
            "ds-config-invalid-key",
            "`zero_optimization.x` (line 3) is not a key of `zero_optimization` in DeepSpeed 0.19.8; the closest is `overlap_comm`",
            "`zero_optimization.x` (line 3) 不是 DeepSpeed 0.19.8 中 `zero_optimization` 的键；最接近的是 `overlap_comm`",
            id="an unknown key with the closest one",
        ),
        pytest.param(
            "disk-full",
            "the directory of temporary files `/x` has 1 MiB free, but a build needs 100 MiB at least",
            "临时文件目录（位于 `/x`）剩余 1 MiB，但编译至少需要 100 MiB",
            id="a directory with too little space",
        ),
        pytest.param(
            "nccl-ib-or-socket-interface",
            "`NCCL_IB_HCA=mlx4_0` matches no RDMA adapter, but this node has mlx5_1 and mlx5_10",
            "`NCCL_IB_HCA=mlx4_0` 没有匹配任何 RDMA 网卡；而本节点有：mlx5_1 和 mlx5_10",
            id="an adapter that is not installed",
        ),
    ],
)
def test_a_message_is_one_chinese_sentence(name: str, said: str, expected: str) -> None:
    assert _own().translate(name, said) == expected


def test_forty_conditions_are_translated() -> None:
    assert len({condition for condition, _, _ in ENTRIES}) == 40


def _own() -> language.Catalogue:
    found = language.catalogue("zh")
    assert found is not None
    return found


def test_a_template_takes_its_values_over() -> None:
    said = "run `/opt/py -m pip install ninja`"
    assert (
        _own().translate("jit-build-ninja-missing", said) == "运行 `/opt/py -m pip install ninja`"
    )
    command = "python -m pip install torch and more"
    given = f"run `{command}`, or pass the job's interpreter with `--python`"
    expected = f"运行 `{command}`，或用 `--python` 指定作业的解释器"
    assert _own().translate("torch-missing", given) == expected, "code is no sentence"
    assert _own().translate("gpu-oom", said) is None, "a text of another condition"
    two = f"run `{command}`, or set `A=1`"
    assert _own().translate("jit-build-ninja-missing", two) is None, "no half of a sentence"


def test_a_sentence_in_a_field_is_translated_or_all_stays_english() -> None:
    upgrade = "upgrade the driver to 580 or newer"
    given = f"run `pip install torch`, or {upgrade}"
    expected = "运行 `pip install torch`，或将驱动升级到 580 或更新版本"
    assert _own().translate("driver-too-old", given) == expected
    more = f"{given}, or on data-center GPUs install `cuda-compat-13-0`"
    assert _own().translate("driver-too-old", more) == (
        f"{expected}，或在数据中心 GPU 上安装 `cuda-compat-13-0`"
    )
    assert _own().translate("driver-too-old", f"{given}, or run on another host") is None


def test_check_in_chinese_keeps_values_and_json_stays_english(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "snapshot.json"
    found.write_bytes(samples.snapshot().to_json())

    def shown(*words: str) -> str:
        main.run(["check", "--from", str(found), *words])
        return capsys.readouterr().out

    chinese = shown("--lang", "zh")
    assert "torch 所用的 CUDA 版本高于 NVIDIA 驱动支持的版本：" in chinese.replace("\n      ", "")
    assert "535.104.05" in chinese
    assert shown("--lang", "zh", "--format", "json") != ""
    assert json.loads(shown("--lang", "zh", "--json")).pop("findings") == json.loads(
        shown("--json")
    ).pop("findings")


def test_the_environment_names_the_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    log.write_text(OOM)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    main.run(["diagnose", str(log)])
    assert "GPU 显存不足" in capsys.readouterr().out
    main.run(["diagnose", str(log), "--lang", "en"])
    assert "The GPU ran out of memory" in capsys.readouterr().out
    main.run(["diagnose", str(log), "--json"])
    assert "显存" not in capsys.readouterr().out


def test_a_page_for_people_is_in_their_language(tmp_path: Path) -> None:
    log, page = tmp_path / "train.log", tmp_path / "page.html"
    log.write_text(OOM)
    main.run(["diagnose", str(log), "--lang", "zh", "-o", str(page)])
    assert "GPU 显存不足" in page.read_text()


def test_the_causes_of_a_smoke_run_are_translated(capsys: pytest.CaptureFixture[str]) -> None:
    unit = REGISTRY.get("gpu-oom")
    cause = SmokeCause(
        condition=unit.condition.name, title=unit.title, message="measured", hint=unit.hint
    )
    report = SmokeReport(verdict="fail", summary="a rank failed", causes=(cause,))
    smoke.show(report, "text", verbose=False, lang="zh")
    shown = capsys.readouterr().out
    assert "GPU 显存不足" not in unit.title
    assert "显存" in shown
    assert unit.hint not in shown
    smoke.show(report, "json", verbose=False, lang="zh")
    assert json.loads(capsys.readouterr().out)["causes"][0]["title"] == unit.title


def test_a_page_and_the_list_have_the_title_and_the_hint_of_the_catalogue(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(*words: str) -> str:
        assert main.run(["explain", *words]) == 0
        return capsys.readouterr().out

    unit = REGISTRY.get("gpu-oom")
    title, hint = (_own().translate("gpu-oom", text) or "" for text in (unit.title, unit.hint))
    page = shown("gpu-oom", "--lang", "zh")
    assert page.split("\n\n")[1:3] == [f"{title}。", f"{hint}。"]
    assert page.endswith(unit.page.rstrip() + "\n")
    assert title in shown("--lang", "zh")
    assert shown("gpu-oom", "--lang", "zh", "--format", "json") == shown(
        "gpu-oom", "--format", "json"
    )
    assert shown("gpu-lost", "--lang", "zh") == shown("gpu-lost"), "not in the catalogue"


def test_the_last_lines_of_a_run_are_translated_and_its_record_is_not(tmp_path: Path) -> None:
    words = ["--preflight", "off", "--lang", "zh", "--", sys.executable, "-c"]
    done = run(tmp_path, *words, f"raise SystemExit({OOM!r})")
    assert done.returncode == 1
    assert "cause: gpu-oom: GPU 显存不足" in done.stderr
    (cause,) = (record(tmp_path)["diagnosis"] or {})["causes"]
    assert cause["hint"] == REGISTRY.get("gpu-oom").hint


def test_every_title_reaches_the_reader_of_a_report() -> None:
    names = sorted({condition for condition, _, _ in ENTRIES})
    titles = {unit.condition.name: unit.title for unit in REGISTRY}
    made = [msgspec.structs.replace(fail("measured"), condition=name) for name in names]
    report = language.of_report(Report(findings=made), titles, "zh")
    shown = text.render(report, width=60)
    assert re.sub(r"\n +", "", shown).count("：measured") == 40
    assert all(columns_of(line) <= 60 for line in shown.splitlines() if "`" not in line)


def test_chinese_is_wrapped_by_its_width() -> None:
    said = "提示：安装与 torch 的 CUDA 版本对应的 toolkit，并将 `CUDA_HOME` 指向它"
    for columns in (24, 40, 60):
        rows = wrap(said, columns, "", "  ", break_long=False)
        assert max(map(columns_of, rows)) <= columns
        assert "".join(row.strip() for row in rows).replace(" ", "") == said.replace(" ", "")
        assert not any(row.strip().startswith(("，", "：")) for row in rows)


def test_a_command_is_never_broken() -> None:
    command = "`pip install --force-reinstall 'torch==2.11.0' --index-url https://example.org/a`"
    for words in (f"run {command}, or upgrade", f"运行 {command}，或升级驱动"):
        for columns in (24, 40, 80):
            rows = wrap(words, columns, "hint: ", "      ", break_long=False)
            assert sum(command in row for row in rows) == 1, rows
            assert all(columns_of(row) <= columns for row in rows if command not in row)
    assert wrap("a ` b c d", 6, "", "", break_long=False) == ["a ` b", "c d"], "no command"


def test_a_long_word_is_cut_where_that_is_asked_for() -> None:
    said = f"读取 {'/x' * 40} 失败"
    assert max(map(columns_of, wrap(said, 30, "", "  ", break_long=True))) <= 30
    assert any("/x" * 40 in row for row in wrap(said, 30, "", "  ", break_long=False))
