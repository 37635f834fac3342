"""Every plan is what it was: `DSDOCTOR_UPDATE_GOLDEN=1 pytest tests/fixes/test_plans.py` writes them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.api import (
    Compiler,
    Environment,
    ImportOutcome,
    OtherToolkits,
    Packages,
    TorchBuild,
    TorchLive,
    fix,
)
from dsdoctor.fixes import planner
from dsdoctor.model import snapshot as snapshots
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.fix_plan import Env, Findings, FixRequest, Impossible, Plan, Reach, Run, Write
from dsdoctor.model.schema import plan_schema
from dsdoctor.packs.registry import FixUnit
from dsdoctor.report import fix_plan
from tests.fixes.cases import (
    ARCHIVES,
    CASES,
    ENV_REACH,
    GCC15,
    LOCKED,
    REGISTRY,
    RUN,
    compilers,
    plan,
    request,
    toolkit_machine,
)

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("case", list(CASES))
def test_golden_plan(case: str) -> None:
    name, facts, request, run = CASES[case]
    document = plan(name, facts(), request, run)
    text = fix_plan.as_json(document)
    jsonschema.validate(json.loads(text), json.loads(plan_schema()))
    shown = "\n".join(fix_plan.render(made, 100) for made in document.plans)
    files = {
        f"{case}.json": text,
        f"{case}.txt": shown,
        f"{case}.sh": fix_plan.shell(document.plans),
    }
    if os.environ.get("DSDOCTOR_UPDATE_GOLDEN"):
        for file, content in files.items():
            (GOLDEN / file).write_text(content, encoding="utf-8")
    for file, content in files.items():
        assert content == (GOLDEN / file).read_text(encoding="utf-8"), file
    if case.endswith("no-way"):
        assert document.impossible
        assert not document.plans
    else:
        (made,) = document.plans
        assert made.steps
        assert not document.impossible


def test_no_lock_is_removed_where_torch_waits_for_none() -> None:
    facts = {"cache": LOCKED, "torch": TorchBuild(version="2.14.0")}
    document = plan("remove-stale-lock", facts)
    assert not document.plans
    (reason,) = document.impossible
    assert "does not wait for files named `lock`" in reason.why


def test_no_golden_plan_is_left_over_and_every_fix_has_one() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)
    planned = {CASES[case][0] for case in CASES if not case.endswith("no-way")}
    assert planned == set(REGISTRY.fixes)


@pytest.mark.parametrize("case", list(CASES))
def test_the_shell_of_every_plan_is_shell(case: str) -> None:
    for shell in ("/bin/sh", "bash"):
        subprocess.run([shell, "-n", str(GOLDEN / f"{case}.sh")], check=True, timeout=200)


def test_a_plan_says_that_it_cannot_be_undone_wherever_it_says_how() -> None:
    """No plan promises an undo that one of its steps does not have."""
    promised = 0
    for case in CASES:
        name, facts, request, run = CASES[case]
        for made in plan(name, facts(), request, run).plans:
            shown = fix_plan.render(made, 400)
            for why in made.irreversible:
                promised += 1
                assert f"CANNOT BE UNDONE: {why}" in shown
            for step in made.steps:
                undone = not isinstance(step, Run) or step.inventory or step.irreversible
                below = isinstance(step, Run) and any(
                    word.startswith(folder) for word in step.argv for folder in made.creates
                )
                assert undone or below, (case, step)
    assert promised


def test_a_list_of_capabilities_is_proven_whole() -> None:
    name, facts, _, run = CASES["install-cuda-toolkit.pip"]
    given = request(arch_list="8.0 9.0a+PTX")
    for asked, archs in ((given, "8.0;9.0a+PTX"), (request(), "8.0")):
        (made,) = plan(name, facts(), asked, run).plans
        compile_, op = made.proof
        assert compile_.argv[7] == archs
        assert op.argv[-1] == "FusedAdamBuilder"
        assert op.env["TORCH_CUDA_ARCH_LIST"] == archs


def test_a_value_is_never_run_by_the_shell_it_is_pasted_into(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    nasty = f"/x/$(touch {mark})`touch {mark}`/bin"
    steps = (Env(env={"CUDA_HOME": nasty, "PATH": f"{nasty}:$PATH"}, why="w\ntouch no"),)
    text = fix_plan.shell([Plan(name="p", title=f"t\ntouch {mark}", steps=steps)])
    text = text.replace("\n)", '\nprintf "%s\\n" "$CUDA_HOME" "$PATH"\n)')
    done = subprocess.run(["/bin/sh"], input=text, capture_output=True, text=True, timeout=200,
                          check=True, env={"PATH": "/usr/bin:/bin"})  # fmt: skip
    assert done.stdout.splitlines() == [nasty, f"{nasty}:/usr/bin:/bin"]
    assert not mark.exists()


def test_pasted_shell_stops_at_the_first_failure_and_never_writes_a_masked_secret(
    tmp_path: Path,
) -> None:
    file = tmp_path / ".deepspeed_env"
    file.write_text(f"HF_TOKEN=hf_{'a' * 30}\nX=1\n")
    was = file.read_text()
    steps = (
        Write(write=str(file), content=f"HF_TOKEN=hf_{'a' * 30}\n", why="w"),
        Write(write=str(tmp_path / "after"), content="x\n", why="w"),
    )
    text = fix_plan.shell([Plan(name="p", title="t", steps=steps, activate="touch activated")])
    assert "hf_aaa" not in text
    done = subprocess.run(["/bin/sh"], input=text, capture_output=True, text=True, timeout=200,
                          check=False, cwd=tmp_path)  # fmt: skip
    assert done.returncode != 0
    assert "contains secrets, which are not printed" in done.stderr
    assert file.read_text() == was
    assert sorted(path.name for path in tmp_path.iterdir()) == [".deepspeed_env"]


def test_a_plan_reaches_as_far_as_its_farthest_step() -> None:
    step = Run(argv=("true",), why="w", reach=Reach.SYSTEM)

    def modest() -> Plan:
        return Plan(name="modest", title="it says env", steps=(step,))

    unit = FixUnit(fix=fix("modest")(modest), title="t", page="")
    for reach, found in ((Reach.ENV, Impossible), (Reach.SYSTEM, Plan)):
        asked = FixRequest(reach=reach)
        made = planner.plan_one(unit, snapshots.of([RunNeeds()], {}), Findings(), asked)
        assert isinstance(made, found)


@pytest.mark.parametrize(
    ("compiler", "why"),
    [
        pytest.param(
            Compiler(command="c++"), "needs a host compiler, but `c++` is not on PATH", id="none"
        ),
        pytest.param(
            Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="8.5.0"),
            "the headers of torch 2.5.1 need gcc 9 or newer, but `c++` is gcc 8.5.0",
            id="too old for torch",
        ),
    ],
)
def test_no_toolkit_is_installed_for_which_there_is_no_compiler(
    compiler: Compiler, why: str
) -> None:
    """Nothing could be built with it, so the fix would download gigabytes and fail its proof."""
    facts = toolkit_machine(archives=ARCHIVES, compilers=compilers(compiler))
    (refused,) = plan("install-cuda-toolkit", facts, ENV_REACH, RUN).impossible
    assert why in refused.why
    facts["others"] = OtherToolkits(gccs=(12,))
    (made,) = plan("install-cuda-toolkit", facts, ENV_REACH, RUN).plans
    assert made.reasons[-1].endswith("`g++-12` is used instead")
    assert "jit-build-gcc-too-old" in made.proves


@pytest.mark.parametrize(
    ("gccs", "chosen"), [((8, 9), None), ((8, 9, 12), "g++-12"), ((9, 13, 14), "g++-13")]
)
def test_no_host_compiler_is_older_than_torchs_headers_allow(
    gccs: tuple[int, ...], chosen: str | None
) -> None:
    """Torch 2.12 needs gcc 10, nvcc 12.4 takes up to 13; nothing may be installed here."""
    facts = toolkit_machine(
        torch=TorchBuild(version="2.12.0", cuda="12.4", path="/e/torch"),
        archives=ARCHIVES,
        compilers=compilers(GCC15),
        others=OtherToolkits(gccs=gccs),
    )
    document = plan("install-cuda-toolkit", facts, ENV_REACH, RUN)
    if chosen is None:
        (refused,) = document.impossible
        assert "install gcc 10 or newer, up to 13" in fix_plan.as_json(document)
        assert refused
    else:
        (made,) = document.plans
        assert f"`{chosen}` is used instead" in made.reasons[-1]


def test_a_torch_that_pip_was_replacing_is_installed_in_its_release() -> None:
    name, facts, asked, run = CASES["install-torch-build.cpu"]
    left = {**facts(), "packages": Packages(remnants={"torch": "2.11.1+cpu"})}
    (made,) = plan(name, left, asked, run).plans
    (step,) = made.steps
    assert isinstance(step, Run)
    assert "torch==2.11.1" in step.argv


def test_a_value_that_stops_the_import_is_unset_and_torch_stays() -> None:
    words = "\nInvalid log settings: dynam0, must be a comma separated list of fully"
    outcome = ImportOutcome(ok=False, error_type="ValueError", message=words)
    facts = {
        **toolkit_machine(),
        "env": Environment(variables={"TORCH_LOGS": "dynam0"}),
        "live": TorchLive(imported=outcome),
    }
    assert not plan("install-torch-build", facts, ENV_REACH, RUN).plans
    (made,) = plan("unset-variables", facts, ENV_REACH, RUN).plans
    assert made.proves == ("variable-refused",)
    assert "TORCH_LOGS" in made.title
