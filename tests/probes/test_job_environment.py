"""The environment that a job's command selects itself, and what is examined then."""

from __future__ import annotations

import pytest

from dsdoctor import interpreter, packs
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, examine
from dsdoctor.job.resolve import resolve
from dsdoctor.judge import Policy
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.finding import Status
from dsdoctor.report import heading
from dsdoctor.testing import FakeHost

HOME = "/home/me"


def venv(prefix: str, *programs: str) -> dict[str, str]:
    return {
        f"{prefix}/pyvenv.cfg": "home = /usr/bin\n",
        **{f"{prefix}/bin/{name}": "" for name in ("python", *programs)},
    }


def conda(prefix: str) -> dict[str, str]:
    return {f"{prefix}/conda-meta/history": "", f"{prefix}/bin/python": ""}


def selected(command: str, files: dict[str, str], **env: str) -> str:
    """The environment that a command selects in /w/p; "" = none."""
    host = FakeHost(files=files, env={"HOME": HOME, **env}, queries={"cwd": "/w/p", "home": HOME})
    run = RunNeeds(cwd="/w/p", command=tuple(command.split()))
    return resolve(run, host).environment


PROJECT = {"/w/p/pyproject.toml": '[project]\nname = "My Tool"\n', "/w/p/t.py": "import torch\n"}
POETRY = f"{HOME}/.cache/pypoetry/virtualenvs"


@pytest.mark.parametrize(
    ("command", "files", "env", "expected"),
    [
        pytest.param(
            "/e/bin/python3.11 t.py", {"/e/bin/python3.11": ""}, {}, "/e/bin/python3.11",
            id="the path of an interpreter",
        ),
        pytest.param(
            "nohup e/bin/torchrun t.py", venv("/w/p/e", "torchrun"), {}, "/w/p/e/bin/python",
            id="the path of a launcher",
        ),
        pytest.param("../e/bin/python t.py", {"/w/e/bin/python": ""}, {}, "/w/e/bin/python",
                     id="the folder above"),
        pytest.param(
            "srun -N2 /c/bin/deepspeed t.py", {**conda("/c"), "/c/bin/deepspeed": ""}, {},
            "/c/bin/python", id="behind srun",
        ),
        pytest.param(
            f"{HOME}/.local/bin/torchrun t.py",
            {f"{HOME}/.local/bin/torchrun": "#!/o/bin/python3\nimport sys", "/o/bin/python3": ""},
            {}, "/o/bin/python3", id="the first line of a launcher",
        ),
        pytest.param("./train.sh.x t.py", {"/w/p/train.sh.x": "#!/bin/sh\n"}, {}, "",
                     id="another program"),
        pytest.param("torchrun t.py", venv("/w/p/.venv", "torchrun"), {}, "",
                     id="a name is looked up by the shell"),
        pytest.param("uv run t.py", PROJECT, {}, "/w/p/.venv", id="uv creates it"),
        pytest.param("uv run torchrun t.py", PROJECT, {"VIRTUAL_ENV": "/v"}, "/w/p/.venv",
                     id="uv, whatever is active"),
        pytest.param(
            "uv --quiet run --project sub torchrun t.py",
            {"/w/p/sub/pyproject.toml": "", **PROJECT, **venv("/w/p/.venv")}, {}, "/w/p/.venv",
            id="a member of uv's workspace",
        ),
        pytest.param("uv run t.py", PROJECT, {"UV_PROJECT_ENVIRONMENT": "/e"}, "/e",
                     id="uv with a variable"),
        pytest.param("uv run --active t.py", PROJECT, {"VIRTUAL_ENV": "/v"}, "", id="uv --active"),
        pytest.param("uv run t.py", {"/w/p/t.py": ""}, {"VIRTUAL_ENV": "/v"}, "",
                     id="uv without a project, something active"),
        pytest.param("uv run t.py", venv("/w/.venv"), {}, "/w/.venv", id="uv without a project"),
        pytest.param(
            "uv run t.py",
            {**PROJECT, "/w/p/t.py": "# /// script\n# dependencies = ['torch']\n# ///\n"}, {}, "",
            id="a script with metadata",
        ),
        pytest.param("uv pip run t.py", PROJECT, {}, "", id="not uv run"),
        pytest.param("poetry run torchrun t.py", {**PROJECT, **venv("/w/p/.venv")}, {},
                     "/w/p/.venv", id="poetry in the project"),
        pytest.param(
            "poetry run torchrun t.py", {**PROJECT, **venv(f"{POETRY}/my_tool-a1b2c3d4-py3.11")},
            {}, f"{POETRY}/my_tool-a1b2c3d4-py3.11", id="poetry's cache",
        ),
        pytest.param(
            "poetry run torchrun t.py",
            {**PROJECT, **venv(f"{POETRY}/my_tool-a1b2c3d4-py3.11"),
             **venv(f"{POETRY}/my_tool-a1b2c3d4-py3.12")},
            {}, "", id="poetry's cache has two",
        ),
        pytest.param("poetry run torchrun t.py", {**PROJECT, **venv("/w/p/.venv")},
                     {"VIRTUAL_ENV": "/v"}, "", id="poetry uses what is active"),
        pytest.param("pdm run t.py", {**PROJECT, "/w/p/.pdm-python": "/d/bin/python\n",
                                      "/d/bin/python": ""}, {}, "/d/bin/python", id="pdm"),
        pytest.param(
            "pipenv run python t.py",
            {"/w/p/Pipfile": "", **venv(f"{HOME}/.local/share/virtualenvs/p-Ab12Cd34")}, {},
            f"{HOME}/.local/share/virtualenvs/p-Ab12Cd34", id="pipenv",
        ),
        pytest.param("pixi run -e gpu train", {"/w/p/pixi.toml": ""}, {}, "/w/p/.pixi/envs/gpu",
                     id="pixi"),
        pytest.param("conda run -p /c/x torchrun t.py", conda("/c/x"), {}, "/c/x",
                     id="conda by path"),
        pytest.param("conda run --no-capture-output -n ds torchrun t.py",
                     conda(f"{HOME}/miniconda3/envs/ds"), {}, f"{HOME}/miniconda3/envs/ds",
                     id="conda by name"),
        pytest.param("micromamba run -n ds torchrun t.py", conda("/m/envs/ds"),
                     {"MAMBA_ROOT_PREFIX": "/m"}, "/m/envs/ds", id="micromamba"),
        pytest.param(
            "conda run -n ds torchrun t.py",
            {**conda("/far/ds"), f"{HOME}/.conda/environments.txt": "/far/ds\n/far/other\n"}, {},
            "/far/ds", id="conda's list of environments",
        ),
        pytest.param("conda run -n none torchrun t.py", {}, {}, "", id="conda, an unknown name"),
        pytest.param("docker run --gpus all image /e/bin/python t.py", {"/e/bin/python": ""}, {},
                     "", id="in a container"),
    ],
)  # fmt: skip
def test_what_a_command_selects(
    command: str, files: dict[str, str], env: dict[str, str], expected: str
) -> None:
    assert selected(command, files, **env) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("source .venv/bin/activate", "/w/p/.venv", id="source"),
        pytest.param(". ~/envs/a/bin/activate", f"{HOME}/envs/a", id="a dot and the home"),
        pytest.param("source $WORK/e/bin/activate", "/scratch/e", id="a variable"),
        pytest.param("E=$WORK/e\nsource $E/bin/activate", "/scratch/e", id="a variable of its own"),
        pytest.param("source $NOPE/e/bin/activate", "", id="an unknown variable"),
        pytest.param("source setup.sh", "", id="another script"),
        pytest.param("conda activate ds", f"{HOME}/miniconda3/envs/ds", id="conda"),
        pytest.param("source activate ds", f"{HOME}/miniconda3/envs/ds", id="conda's old form"),
        pytest.param("source ~/miniconda3/bin/activate ds", f"{HOME}/miniconda3/envs/ds",
                     id="conda's old form with a path"),
        pytest.param("conda activate none", "", id="an unknown name"),
        pytest.param("conda activate ds\nsource .venv/bin/activate", "/w/p/.venv", id="the last"),
        pytest.param("conda activate ds\nconda deactivate", "", id="no longer"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("starter", ["bash job.sh", "sbatch -N 2 job.sh"])
def test_what_a_script_activates(starter: str, lines: str, expected: str) -> None:
    files = {
        **venv("/w/p/.venv"),
        **venv("/scratch/e"),
        **venv(f"{HOME}/envs/a"),
        **conda(f"{HOME}/miniconda3/envs/ds"),
        "/w/p/setup.sh": "",
        "/w/p/t.py": "",
        "/w/p/job.sh": f"#!/bin/bash\n{lines}\nsrun torchrun t.py\nsource late/bin/activate\n",
    }
    assert selected(starter, files, WORK="/scratch") == expected


def test_a_program_of_the_script_wins() -> None:
    files = {
        **venv("/w/p/.venv"),
        **venv("/o", "torchrun"),
        "/w/p/t.py": "",
        "/w/p/job.sh": "source .venv/bin/activate\n/o/bin/torchrun t.py\n",
    }
    assert selected("bash job.sh", files) == "/o/bin/python"


def test_an_active_environment_without_torch_is_judged_if_its_program_starts() -> None:
    env = {"VIRTUAL_ENV": "/v", "PATH": "/v/bin:/usr/bin"}
    torch = {"/v/lib/python3.11/site-packages/torch/__init__.py": ""}
    assert selected("torchrun t.py", venv("/v", "torchrun"), **env) == "/v"
    assert selected("FOO=1 torchrun t.py", venv("/v", "torchrun"), **env) == "/v"
    assert selected("torchrun t.py", {**venv("/v", "torchrun"), **torch}, **env) == ""  # is chosen
    assert selected("torchrun t.py", {**venv("/v"), "/usr/bin/torchrun": ""}, **env) == ""
    other = {
        **venv("/v", "torchrun"),
        **venv("/o"),
        "/w/p/job.sh": "source /o/bin/activate\ntorchrun t.py\n",
    }
    assert selected("bash job.sh", other, **env) == "/o"


TORCH = {"/w/.venv/lib/python3.11/site-packages/torch/__init__.py": ""}


def chosen(files: dict[str, str], run: RunNeeds | None = None, **env: str) -> tuple[str, str]:
    host = FakeHost(
        files={"/usr/bin/python3": "", **files},
        env={"PATH": "/usr/bin", **env},
        queries={"cwd": "/w", "home": HOME},
    )
    choice = interpreter.choose(host, run=run)
    return choice.executable, choice.chosen_by


def test_the_environment_of_the_folder_is_examined_if_no_other_has_torch() -> None:
    assert chosen({}) == ("/usr/bin/python3", "python3 on PATH")
    assert chosen(venv("/w/.venv")) == ("/usr/bin/python3", "python3 on PATH")
    near = {**venv("/w/.venv"), **TORCH}
    assert chosen(near) == ("/w/.venv/bin/python", ".venv here")
    started = RunNeeds(command=("python", "t.py"))
    assert chosen(near, started) == ("/usr/bin/python3", "python3 on PATH")
    own = {**venv("/v"), "/v/lib/python3.11/site-packages/torch/__init__.py": ""}
    assert chosen({**near, **own}, VIRTUAL_ENV="/v") == ("/v/bin/python", "VIRTUAL_ENV")


def test_the_command_decides_unless_the_user_does() -> None:
    run = RunNeeds(environment="/e", environment_by="`uv run` uses it")
    assert chosen(venv("/e"), run) == ("/e/bin/python", "the command")
    named = {**venv("/e"), **venv("/v")}
    assert chosen(named, run, VIRTUAL_ENV="/v") == ("/e/bin/python", "the command")
    assert chosen(named, run, DSDOCTOR_PYTHON="/v/bin/python")[1] == "DSDOCTOR_PYTHON"
    with pytest.raises(UsageError, match=r"`/e` does not exist yet \(`uv run` uses it\)"):
        chosen({}, run)


@pytest.mark.parametrize(
    "command",
    [
        "docker run --gpus all --shm-size 8g image torchrun t.py",
        "apptainer exec --nv x.sif torchrun t.py",
        "srun --container-image=x.sqsh torchrun t.py",
    ],
)
def test_the_hosts_environment_is_not_that_of_a_container(command: str) -> None:
    """Without torch on the host, nothing is missing for a job in a container."""
    host = FakeHost(
        files={"/usr/bin/python3": ""},
        env={"PATH": "/usr/bin"},
        queries={"cwd": "/w", "home": HOME, "hostname": "h"},
    )
    registry = packs.load_scope(Scope.USER_ENV)
    run = RunNeeds(cwd="/w", quick=True, command=tuple(command.split()))
    units = registry.select(("torch-missing", "deepspeed-missing"), ())
    snapshot, report = examine(Request(run=run, host=host), registry, units, Policy())
    choice = snapshot.get(PatientChoice)
    assert isinstance(choice, Missing)
    assert choice.why is Why.NOT_ASKED
    assert {finding.status for finding in report.findings} == {Status.SKIP}
    assert "container not examined" in list(heading.items(report))
    named = Request(run=run, host=host, python="/usr/bin/python3")
    snapshot, _ = examine(named, registry, units, Policy())
    assert isinstance(snapshot.get(PatientChoice), PatientChoice)
