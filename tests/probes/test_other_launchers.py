"""Launch commands of ColossalAI, Composer, Horovod, Flux, LSF and Cray, as their parsers read them."""

from __future__ import annotations

import shlex

import pytest

from dsdoctor.api import LaunchCommand, Missing, Why
from dsdoctor.job.followed import follow
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.ranks import ranks_of
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.shell_lines import launches, not_followed
from dsdoctor.probes.shell_programs import is_launch
from dsdoctor.testing import FakeHost

ABSENT = Missing(why=Why.ABSENT, detail="not read")


def read(line: str) -> LaunchCommand:
    return parse_command(shlex.split(line))


def ranks(line: str) -> int | None:
    found = ranks_of(RunNeeds(), read(line), ABSENT, ABSENT, ABSENT)
    return None if found is None else found.count


@pytest.mark.parametrize(
    ("line", "script", "args", "each"),
    [
        pytest.param(
            "colossalai run --nproc_per_node 4 --master_port 29800 sft.py --lr 1",
            "sft.py",
            ("--lr", "1"),
            4,
            id="colossalai",
        ),
        pytest.param(
            "colossalai run sft.py --lr 1 --nproc_per_node=4",
            "sft.py",
            ("--lr", "1"),
            4,
            id="click-reads-options-after-the-script",
        ),
        pytest.param(
            "colossalai run --nproc_per_node 2 -m jobs.sft --lr 1",
            "jobs.sft",
            ("--lr", "1"),
            2,
            id="colossalai-module",
        ),
        pytest.param(
            "composer -n 8 -v sft.py conf.yaml", "sft.py", ("conf.yaml",), 8, id="composer"
        ),
        pytest.param(
            "composer --nproc 2 --module_mode jobs.sft a",
            "jobs.sft",
            ("a",),
            2,
            id="composer-module",
        ),
        pytest.param(
            "python -m composer.cli.launcher -n 2 sft.py", "sft.py", (), 2, id="composer-as-module"
        ),
        pytest.param("composer sft.py conf.yaml", "sft.py", ("conf.yaml",), None, id="all-gpus"),
    ],
)
def test_launchers_of_torch_are_read(
    line: str, script: str, args: tuple[str, ...], each: int | None
) -> None:
    found = read(line)
    assert (found.script, found.script_args, found.num_gpus) == (script, args, each)
    assert is_launch(shlex.split(line))


@pytest.mark.parametrize(
    ("line", "launcher", "script", "count"),
    [
        pytest.param(
            "horovodrun -np 8 -H a:4,b:4 --autotune python -u t.py -n 1",
            "horovodrun",
            "t.py",
            8,
            id="horovodrun",
        ),
        pytest.param(
            "flux run -N2 -n 8 -g1 -o mpi=x --exclusive python t.py", "flux", "t.py", 8, id="flux"
        ),
        pytest.param("flux mini run -n2 python t.py", "flux", "t.py", 2, id="flux-mini"),
        pytest.param("jsrun -r 4 -a1 -g 1 -dpacked python t.py", "jsrun", "t.py", None, id="jsrun"),
        pytest.param("aprun -n4 -N 2 -cc depth -b python t.py", "aprun", "t.py", None, id="aprun"),
        pytest.param("mpirun -np 4 -- python t.py", "mpirun", "t.py", 4, id="mpirun-with-dashes"),
    ],
)
def test_starters_are_read(line: str, launcher: str, script: str, count: int | None) -> None:
    found = read(line)
    assert (found.launcher, found.script, ranks(line)) == (launcher, script, count)


def test_a_starter_starts_a_launcher() -> None:
    found = read("flux run -N 2 --tasks-per-node=1 torchrun --nnodes 2 --nproc_per_node 4 t.py")
    assert (found.launcher, found.inner, found.num_nodes, found.num_gpus) == (
        "flux",
        "torchrun",
        2,
        4,
    )
    assert read("jsrun -n 2 torchrun t.py").inner == "torchrun"


@pytest.mark.parametrize("line", ["mpirun -np 16 -N 8 python t.py", "aprun -n 16 -N 8 python t.py"])
def test_ranks_of_a_node_are_no_nodes(line: str) -> None:
    assert read(line).num_nodes is None
    assert read("srun -N 8 python t.py").num_nodes == 8


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("composer install --no-dev", id="php"),
        pytest.param("flux alloc -N 2", id="flux-alloc"),
        pytest.param("flux reconcile source git x", id="fluxcd"),
        pytest.param("colossalai check -i", id="colossalai-check"),
    ],
)
def test_other_uses_of_the_names_launch_nothing(line: str) -> None:
    assert read(line).launcher == "other"
    assert not launches(line)


def reason(line: str) -> str:
    return follow(tuple(shlex.split(line)), FakeHost(files={}), "/w").reason


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("timeout 5h bsub -n 4", "`bsub` submits the job to a queue", id="bsub"),
        pytest.param("qsub -I -l select=2", "`qsub` submits the job to a queue", id="qsub"),
        pytest.param("timeout 5h bsub -n 4 ./run", "`run` is no launcher", id="what-bsub-starts"),
        pytest.param("hf jobs uv run t.py", "`hf jobs` starts the job on machines", id="hf-jobs"),
        pytest.param("srun -N 2 ./solve", "`solve` is no launcher", id="srun-of-a-program"),
        pytest.param("torchrun ${ARGS[@]} t.py", "`${ARGS[@]}` is a variable", id="options"),
        pytest.param("$RUN t.py", "`$RUN` is a variable", id="program"),
        pytest.param(
            f"srun {' '.join(f'--x{n}=1' for n in range(15))} bash job.sh",
            "`/w/job.sh` does not exist",
            id="a-shell-after-many-options",
        ),
    ],
)
def test_what_is_not_understood_is_said(line: str, said: str) -> None:
    assert reason(line).startswith(said)


@pytest.mark.parametrize(
    "line",
    [
        "srun -N 2 hostname",
        "srun -N 2 python t.py",
        "mpirun -np 2 torchrun t.py",
        "torchrun $DIR/t.py",
        "python t.py --shell bash",
    ],
)
def test_what_is_understood_or_starts_no_job_is_not(line: str) -> None:
    assert not reason(line)


def test_a_typed_line_with_a_quoted_value_is_split() -> None:
    found = follow(("python t.py a.b='${x}' --list=\"1 2\"",), FakeHost(files={}), "/w")
    assert not found.reason
    assert found.words == ("python", "t.py", "a.b=${x}", "--list=1 2")


def test_the_ranks_behind_a_variable_are_not_known() -> None:
    assert read("torchrun $ARGS t.py").num_gpus is None
    assert read("torchrun t.py").num_gpus == 1


def test_a_script_that_submits_others_says_so() -> None:
    assert [line for line, _ in not_followed("cd x\nsbatch -N 2 job.sh\n")] == [2]
    assert not not_followed("sbatch --wrap='torchrun t.py'")


@pytest.mark.parametrize(
    "switch", ["--no-container-mount-home", "--container-writable", "--no-container-entrypoint"]
)
def test_switches_of_pyxis_take_no_value(switch: str) -> None:
    found = read(f"srun --container-image=a.sqsh {switch} torchrun --nproc_per_node 2 t.py")
    assert (found.inner, found.script, found.outer["container_image"]) == (
        "torchrun",
        "t.py",
        "a.sqsh",
    )


def test_a_typed_substitution_is_read_by_a_shell() -> None:
    line = "torchrun --nproc_per_node $((2 * 4)) t.py"
    found = follow((line,), FakeHost(files={}), "/w")
    assert parse_command(found.words).num_gpus == 8


@pytest.mark.parametrize(
    ("line", "env"),
    [
        pytest.param("mpirun -x A=1 -x PATH -x B=x,y -np 2", {"A": "1", "B": "x,y"}, id="open-mpi"),
        pytest.param("mpiexec -genv A 1 -genv B=2 -genvall -n 2", {"A": "1", "B": "2"}, id="hydra"),
        pytest.param("mpiexec --env A=1 -n 2", {"A": "1"}, id="pals"),
        pytest.param("srun --export=ALL,A=1,B=2 -n 2", {"A": "1", "B": "2"}, id="srun"),
        pytest.param("srun --export ALL -n 2", {}, id="srun-all"),
        pytest.param("flux run --env=A=1 -n2", {"A": "1"}, id="flux"),
        pytest.param("jsrun -E A=1 -n2", {"A": "1"}, id="jsrun"),
        pytest.param("C=0 mpirun -x A=1 -np 2", {"C": "0", "A": "1"}, id="in-front-too"),
    ],
)
def test_options_that_set_variables_are_read(line: str, env: dict[str, str]) -> None:
    found = read(f"{line} torchrun --nproc_per_node 2 t.py")
    assert (found.env, found.inner, found.script) == (env, "torchrun", "t.py")


def test_a_script_in_a_shell_that_a_starter_starts_is_its_program() -> None:
    found = launches('srun -N 2 sh -c "cd x; A=1 python -u t.py --n 1"')
    assert [one.words for one in found] == [
        ("srun", "-N", "2", "A=1", "python", "-u", "t.py", "--n", "1")
    ]
    assert len(launches("srun -N 2 sh -c 'python t.py; python u.py'")) == 2
    assert not launches("sh -c 'python t.py'")


def test_variables_of_libraries_in_a_container_are_read() -> None:
    line = (
        "docker run --gpus all -e NCCL_DEBUG=INFO --env=TORCH_SHOW_CPP_STACKTRACES=1 -e HOME=/x"
        " -e NCCL_HOST image torchrun t.py -e NCCL_OWN=1"
    )
    assert read(line).env == {"NCCL_DEBUG": "INFO", "TORCH_SHOW_CPP_STACKTRACES": "1"}
    assert read("apptainer exec --env NCCL_IB_HCA=a x.sif python t.py").env == {"NCCL_IB_HCA": "a"}
    assert read("torchrun t.py -e NCCL_OWN=1").env == {}
