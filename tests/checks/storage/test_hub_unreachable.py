"""Rows of `hub-unreachable`, where the model of a command is, and its weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.api import Environment, LaunchFiles, RunNeeds, Storage, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.job.resolve import resolve
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.environment import select
from dsdoctor.probes.launch_files import launch_files
from dsdoctor.probes.script_paths import script_paths
from dsdoctor.probes.storage import checkpoint
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.storage import hub_unreachable, path_missing, weights_file_corrupt
from tests.checks.machines import ABSENT, words

LLAMA = "meta-llama/Llama-2-7b-hf"


@pytest.mark.parametrize(
    ("cached", "variables", "line", "expected"),
    [
        pytest.param(False, {"HF_HUB_OFFLINE": "1"}, "deepspeed t.py", "fail", id="offline"),
        pytest.param(False, {"TRANSFORMERS_OFFLINE": "true"}, "deepspeed t.py", "fail", id="too"),
        pytest.param(False, {}, "HF_HUB_OFFLINE=1 deepspeed t.py", "fail", id="in the command"),
        pytest.param(True, {"HF_HUB_OFFLINE": "1"}, "deepspeed t.py", "ok", id="cached"),
        pytest.param(False, {}, "deepspeed t.py", "ok", id="online"),
        pytest.param(False, {"HF_HUB_OFFLINE": "0"}, "deepspeed t.py", "ok", id="0 is off"),
        pytest.param(None, {"HF_HUB_OFFLINE": "1"}, "deepspeed t.py", "skip", id="a folder"),
        pytest.param(
            False, {"HF_ENDPOINT": "hub.example"}, "deepspeed t.py", "fail", id="no scheme"
        ),
        pytest.param(
            True, {"HF_ENDPOINT": "a.b:8080/"}, "deepspeed t.py", "fail", id="with a port"
        ),
        pytest.param(
            None, {"HF_ENDPOINT": "hub.example"}, "deepspeed t.py", "warn", id="any model"
        ),
        pytest.param(False, {}, "HF_ENDPOINT=a.b deepspeed t.py", "fail", id="the command sets it"),
        pytest.param(False, {"HF_ENDPOINT": "http://a.b"}, "deepspeed t.py", "ok", id="a scheme"),
        pytest.param(False, {"HF_ENDPOINT": "$MIRROR"}, "deepspeed t.py", "ok", id="not expanded"),
        pytest.param(
            None,
            {"HF_ENDPOINT": "a.b", "HF_HUB_OFFLINE": "1"},
            "deepspeed t.py",
            "skip",
            id="the hub is not asked",
        ),
    ],
)
def test_rows(cached: bool | None, variables: dict[str, str], line: str, expected: str) -> None:
    judged = judge(
        hub_unreachable.the_model_is_at_hand,
        launch_files=LaunchFiles(model=LLAMA, model_cached=cached),
        environment=Environment(variables=variables),
        launch_command=parse_command(line.split()),
    )
    assert judged.status == expected


@pytest.mark.parametrize(
    ("model", "env", "folder", "cached"),
    [
        pytest.param(LLAMA, {}, None, True, id="in the default cache"),
        pytest.param("org/other", {}, None, False, id="nowhere"),
        pytest.param("org/other", {"HF_HOME": "/hf"}, None, True, id="in HF_HOME"),
        pytest.param("org/third", {"HF_HUB_CACHE": "/hub"}, None, True, id="in HF_HUB_CACHE"),
        pytest.param("./m", {}, "/job/m", None, id="a folder"),
        pytest.param("/abs/m", {}, "/abs/m", None, id="a folder elsewhere"),
        pytest.param("./absent", {}, None, None, id="a folder that does not exist"),
        pytest.param("$MODEL", {}, None, None, id="a variable of the shell"),
        pytest.param("gpt2", {}, None, None, id="a name without an owner"),
    ],
)
def test_where_the_model_is(
    model: str, env: dict[str, str], folder: str | None, cached: bool | None
) -> None:
    files = (
        "/home/me/.cache/huggingface/hub/models--meta-llama--Llama-2-7b-hf/refs/main",
        "/hf/hub/models--org--other/refs/main",
        "/hub/models--org--third/refs/main",
        "/job/m/config.json",
        "/abs/m/config.json",
    )
    host = FakeHost(env={"HOME": "/home/me", **env}, files=dict.fromkeys(files, ""))
    command = parse_command(["deepspeed", "t.py", "--model_name_or_path", model])
    found = launch_files.function(host, RunNeeds(cwd="/job"), command, ABSENT)
    assert (found.model_folder, found.model_cached) == (folder, cached)


@pytest.mark.parametrize(
    ("words", "resumed"),
    [
        pytest.param("--resume_from_checkpoint out/checkpoint-9", "out/checkpoint-9", id="absent"),
        pytest.param("--resume-from-checkpoint=/job/m", "/job/m", id="with a hyphen"),
        pytest.param("--resume_from_checkpoint m", "m", id="a folder here"),
        pytest.param("--resume_from_checkpoint checkpoint-9", None, id="of the output directory"),
        pytest.param("--resume_from_checkpoint latest", None, id="the newest"),
        pytest.param("--resume_from_checkpoint True", None, id="a switch"),
        pytest.param("--resume_from_checkpoint --bf16", None, id="without a value"),
        pytest.param("--resume_from_checkpoint $OUT/checkpoint-9", None, id="of the shell"),
        pytest.param("--resume_from_checkpoint s3://bucket/c", None, id="elsewhere"),
    ],
)
def test_the_checkpoint_that_a_command_resumes_from(words: str, resumed: str | None) -> None:
    host = FakeHost(env={"HOME": "/home/me"}, files={"/job/m/config.json": ""})
    command = parse_command(["deepspeed", "t.py", *words.split()])
    found = launch_files.function(host, RunNeeds(cwd="/job"), command, ABSENT)
    assert found.resumed == resumed


NEWEST = "resume_from_checkpoint: true\noutput_dir: out\n"


@pytest.mark.parametrize(
    ("yaml", "folders", "resumed"),
    [
        pytest.param(NEWEST, ("checkpoint-9", "checkpoint-10"), "out/checkpoint-10", id="newest"),
        pytest.param(NEWEST, ("runs", "checkpoint-9x"), "out/checkpoint-*", id="none"),
        pytest.param(NEWEST, (), "out/checkpoint-*", id="no output directory"),
        pytest.param(NEWEST.replace("true", "null"), (), None, id="not resumed"),
        pytest.param(NEWEST.replace("out\n", "$OUT\n"), (), None, id="unknown directory"),
        pytest.param(NEWEST + "stage: rm\nfinetuning_type: full\n", (), None, id="not this stage"),
    ],
)
def test_the_checkpoint_that_llama_factory_resumes_from(
    yaml: str, folders: tuple[str, ...], resumed: str | None
) -> None:
    files = {"/job/lf.yaml": yaml} | {f"/job/out/{name}/x": "" for name in folders}
    host = FakeHost(env={"HOME": "/home/me"}, files=files)
    for line, expected in (
        ("llamafactory-cli train lf.yaml", resumed),
        ("torchrun t.py lf.yaml", None),  # what the script makes of it is not known
    ):
        run = resolve(RunNeeds(cwd="/job", command=tuple(line.split())), host)
        found = launch_files.function(host, run, parse_command(line.split()), ABSENT)
        assert found.resumed == expected


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        pytest.param("deepspeed t.py --model_name_or_path ./absent", True, id="absent"),
        pytest.param("torchrun t.py --model_name_or_path /data/absent", True, id="absolute"),
        pytest.param("deepspeed t.py --model_name_or_path ./m", False, id="there"),
        pytest.param("deepspeed t.py --model_name_or_path org/absent", False, id="of the hub"),
        pytest.param("deepspeed t.py --model_name_or_path $BASE/absent", False, id="of the shell"),
        pytest.param("kubectl exec p -- python t.py --model_path /m", False, id="elsewhere"),
        pytest.param("llamafactory-cli train /job/lf.yaml", True, id="in the YAML of a trainer"),
        pytest.param("swift sft --model ./absent", True, id="ms-swift's own name of the option"),
        pytest.param("deepspeed t.py --model ./absent", False, id="a script's option of that name"),
    ],
)
def test_a_model_that_does_not_exist(line: str, missing: bool) -> None:
    files = {"/job/m/config.json": "", "/job/lf.yaml": "model_name_or_path: /data/absent\n"}
    host = FakeHost(env={"HOME": "/home/me"}, files=files)
    run = resolve(RunNeeds(cwd="/job", command=tuple(line.split())), host)
    found = launch_files.function(host, run, parse_command(line.split()), ABSENT)
    assert found.model_missing == missing
    judged = judge(path_missing.paths_are_there, storage=Storage(), launch_files=found)
    assert words(judged.findings) == (["fail"] if missing else ["ok"])


def test_weights_of_the_model_are_examined(tmp_path: Path) -> None:
    """Pointers of Git LFS are found before the ranks start; what holds no weights is left alone."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    launch = LaunchFiles(model=str(tmp_path), model_folder=str(tmp_path))
    run, host = RunNeeds(cwd=str(tmp_path)), LocalHost()
    with pytest.raises(HostError, match="no weights"):
        checkpoint.function(host, run, launch)
    (tmp_path / "model.safetensors").write_text(pointer, encoding="utf-8")
    found = checkpoint.function(host, run, launch)
    assert judge(weights_file_corrupt.files_are_whole, checkpoint=found).status == "fail"
    with pytest.raises(HostError, match="--checkpoint"):
        checkpoint.function(host, RunNeeds(cwd=str(tmp_path), quick=True), launch)


ADAPTER = '{"base_model_name_or_path": "%s"}'


@pytest.mark.parametrize(
    ("config", "words", "base"),
    [
        pytest.param(ADAPTER % "/gone/m", "--model_name_or_path a", "/gone/m", id="it is gone"),
        pytest.param(ADAPTER % "./gone", "--model_name_or_path a", "./gone", id="of this folder"),
        pytest.param(ADAPTER % "/abs/m", "--model_name_or_path a", "", id="it is there"),
        pytest.param(ADAPTER % "org/m", "--model_name_or_path a", "", id="of the hub"),
        pytest.param("{}", "--model_name_or_path a", "", id="not named"),
        pytest.param("[", "--model_name_or_path a", "", id="no JSON"),
        pytest.param(
            ADAPTER % "/gone/m", "--model_path a --base_model_path /abs/m", "", id="another option"
        ),
    ],
)
def test_the_model_below_an_adapter(config: str, words: str, base: str) -> None:
    files = {"/job/a/adapter_config.json": config, "/abs/m/config.json": "{}"}
    command = parse_command(["deepspeed", "t.py", *words.split()])
    found = launch_files.function(FakeHost(files=files), RunNeeds(cwd="/job"), command, ABSENT)
    assert found.model_base == base
    judged = judge(path_missing.paths_are_there, storage=Storage(), launch_files=found)
    assert judged.status == ("fail" if base else "ok")


def test_a_model_of_another_account(tmp_path: Path) -> None:
    """Reads as an account that is refused the file."""

    class Refused(LocalHost):
        def read(self, path: str) -> bytes:
            raise HostError(Why.DENIED, "Permission denied")

    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").touch()
    command = parse_command(["deepspeed", "t.py", "--model_name_or_path", "m"])
    found = launch_files.function(Refused(), RunNeeds(cwd=str(tmp_path)), command, ABSENT)
    assert found.model_denied
    judged = judge(path_missing.paths_are_there, storage=Storage(), launch_files=found)
    assert [one.message for one in judged.bad] == [
        "the model `m` of the command cannot be read by this account"
    ]


DATA = "from datasets import load_dataset\nrows = load_dataset('org/rows', split='train')\n"
MODEL = (
    "from transformers import AutoModel\nNAME = 'org/m'\nmodel = AutoModel.from_pretrained(NAME)\n"
)


@pytest.mark.parametrize(
    ("text", "cached", "variables", "expected"),
    [
        pytest.param(DATA, "", {"HF_DATASETS_OFFLINE": "1"}, "fail", id="data"),
        pytest.param(DATA, "", {"HF_HUB_OFFLINE": "1"}, "fail", id="data, by the hub's variable"),
        pytest.param(
            DATA, "", {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "0"}, "skip", id="data only"
        ),
        pytest.param(DATA, "", {}, "skip", id="online"),
        pytest.param(DATA, "hub/datasets--org--rows/refs/main", {"HF_HUB_OFFLINE": "1"}, "skip",
                     id="downloaded"),
        pytest.param(DATA, "datasets/org___rows/default/i.json", {"HF_HUB_OFFLINE": "1"}, "skip",
                     id="prepared"),
        pytest.param(DATA, "/job/org/rows/a.json", {"HF_HUB_OFFLINE": "1"}, "skip", id="a folder"),
        pytest.param(MODEL, "", {"TRANSFORMERS_OFFLINE": "1"}, "fail", id="a model in a variable"),
        pytest.param(MODEL, "", {"HF_DATASETS_OFFLINE": "1"}, "skip", id="the variable of data"),
        pytest.param(MODEL, "hub/models--org--m/refs/main", {"HF_HUB_OFFLINE": "1"}, "skip",
                     id="a cached model"),
        pytest.param(
            MODEL.replace("NAME)", "NAME, cache_dir='/c')"), "", {"HF_HUB_OFFLINE": "1"}, "skip",
            id="another cache",
        ),
        pytest.param(
            MODEL.replace("transformers", "modelscope"), "", {"HF_HUB_OFFLINE": "1"}, "skip",
            id="another hub",
        ),
        pytest.param(
            f"import os\nos.environ['HF_HOME'] = '/d'\n{MODEL}", "", {"HF_HUB_OFFLINE": "1"},
            "skip", id="the script chooses the cache",
        ),
        pytest.param(
            MODEL.replace("model =", "if x:\n    model ="), "", {"HF_HUB_OFFLINE": "1"}, "skip",
            id="perhaps",
        ),
    ],
)  # fmt: skip
def test_what_the_script_loads(
    text: str, cached: str, variables: dict[str, str], expected: str
) -> None:
    files = {"/job/t.py": text}
    if cached:
        files[cached if cached.startswith("/") else f"/h/.cache/huggingface/{cached}"] = ""
    host = FakeHost(env={"HOME": "/h", **variables}, files=files)
    run, command = RunNeeds(cwd="/job"), parse_command(["torchrun", "t.py"])
    judged = judge(
        hub_unreachable.the_model_is_at_hand,
        launch_files=launch_files.function(host, run, command, ABSENT),
        environment=Environment(variables=variables),
        launch_command=command,
        script_paths=script_paths.function(host, run, command),
    )
    assert judged.status == expected


def test_the_variables_of_the_hub_are_read() -> None:
    names = ("HF_ENDPOINT", "HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    assert set(select(dict.fromkeys(names, "1"))) == set(names)
