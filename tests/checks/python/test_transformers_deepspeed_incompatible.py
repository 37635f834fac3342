"""Rows of `transformers-deepspeed-incompatible`."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor.api import LaunchCommand, Packages, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.python import transformers_deepspeed_incompatible
from tests.checks.python.support import packages

HF = RunNeeds(framework="hf")
AUTO = RunNeeds(config={"scheduler": {"params": {"warmup_num_steps": "auto"}}})


@pytest.mark.parametrize(
    ("found", "run", "expected"),
    [
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.19.8"),
            RunNeeds(),
            "ok",
            id="transformers 5.23 with deepspeed 0.19.8",
        ),
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.19.8", accelerate="1.15.0"),
            AUTO,
            "ok",
            id="transformers 5.23 does not turn an auto warm-up into 0",
        ),
        pytest.param(
            packages(transformers="5.1.0", torch="2.3.0+cu121", deepspeed="0.16.4"),
            RunNeeds(),
            "fail",
            id="torch 2.3 is too old for transformers 5.1",
        ),
        pytest.param(
            packages(transformers="5.1.0", torch="2.3.0+cu121"),
            RunNeeds(),
            "fail",
            id="the same without deepspeed",
        ),
        pytest.param(
            packages(transformers="5.0.0", torch="2.3.0+cu121", deepspeed="0.16.4"),
            RunNeeds(),
            "fail",
            id="transformers 5.0 accepts torch 2.3, but its models do not run with it",
        ),
        pytest.param(
            packages(transformers="4.51.3", torch="2.0.1", deepspeed="0.16.4", accelerate="0.34.0"),
            RunNeeds(),
            "ok",
            id="transformers 4.51 asks for neither",
        ),
        pytest.param(
            packages(transformers="4.52.3", deepspeed="0.16.4", accelerate="0.34.0"),
            RunNeeds(),
            "fail",
            id="accelerate 0.34 does not know what the Trainer of 4.52 passes",
        ),
        pytest.param(
            packages(transformers="4.52.3", deepspeed="0.16.4", accelerate="1.3.0"),
            RunNeeds(),
            "ok",
            id="accelerate 1.3 does",
        ),
        pytest.param(
            packages(transformers="5.20.0", torch="2.5.1", deepspeed="0.19.8"),
            RunNeeds(),
            "fail",
            id="torch 2.5 is too old for transformers 5.20",
        ),
        pytest.param(
            packages(transformers="5.15.0", torch="2.5.1", deepspeed="0.19.8"),
            RunNeeds(),
            "ok",
            id="torch 2.5 is new enough for transformers 5.15",
        ),
        pytest.param(
            packages(transformers="4.57.6", torch="2.1.2", deepspeed="0.18.2"),
            RunNeeds(),
            "fail",
            id="transformers 4.57 is not imported with torch 2.1, which it accepts",
        ),
        pytest.param(
            packages(transformers="4.55.4", torch="2.1.2", deepspeed="0.18.2"),
            RunNeeds(),
            "ok",
            id="transformers 4.55 works with torch 2.1",
        ),
        pytest.param(
            packages(transformers="4.36.2", deepspeed="0.19.8", accelerate="1.15.0"),
            HF,
            "fail",
            id="accelerate 1.15 does not take what the Trainer of 4.36 passes",
        ),
        pytest.param(
            packages(transformers="4.39.3", deepspeed="0.19.8", accelerate="1.0.1"),
            RunNeeds(),
            "warn",
            id="the same, where the job may have no Trainer",
        ),
        pytest.param(
            packages(transformers="4.36.2", deepspeed="0.19.8", accelerate="1.15.0"),
            RunNeeds(framework="native"),
            "ok",
            id="the same, where the job has its own loop",
        ),
        pytest.param(
            packages(transformers="4.39.3", deepspeed="0.19.8", accelerate="0.34.2"),
            HF,
            "ok",
            id="accelerate 0.34 takes what the Trainer of 4.39 passes",
        ),
        pytest.param(
            packages(transformers="4.40.2", deepspeed="0.19.8", accelerate="1.15.0"),
            HF,
            "ok",
            id="accelerate 1.15 takes what the Trainer of 4.40 passes",
        ),
        pytest.param(
            packages(transformers="4.31.0", deepspeed="0.19.8", accelerate="1.15.0"),
            HF,
            "ok",
            id="the Trainer of 4.31 does not pass it yet",
        ),
        pytest.param(
            packages(transformers="4.46.3", deepspeed="0.15.4", accelerate="0.25.0"),
            HF,
            "fail",
            id="the Trainer of 4.46 asks for accelerate 0.26",
        ),
        pytest.param(
            packages(transformers="4.44.2", deepspeed="0.15.4", accelerate="0.25.0"),
            HF,
            "ok",
            id="the Trainer of 4.44 does not yet",
        ),
        pytest.param(
            packages(deepspeed="0.9.0"), RunNeeds(), "skip", id="transformers is not installed"
        ),
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.9.2"),
            RunNeeds(),
            "fail",
            id="deepspeed 0.9.2 is too old for transformers 5.23",
        ),
        pytest.param(
            packages(transformers="5.23.0", deepspeed="0.19.8", accelerate="1.0.1"),
            RunNeeds(),
            "fail",
            id="accelerate 1.0.1 is too old for transformers 5.23",
        ),
        pytest.param(
            packages(transformers="4.57.1", deepspeed="0.19.8"),
            AUTO,
            "warn",
            id="deepspeed 0.19.8 rejects the warm-up of 0 that transformers 4.57 fills in",
        ),
        pytest.param(
            packages(transformers="4.57.1", deepspeed="0.19.8"),
            RunNeeds(),
            "ok",
            id="transformers 4.57 and deepspeed 0.19.8 without an auto warm-up",
        ),
        pytest.param(
            packages(transformers="4.57.1", deepspeed="0.18.0"),
            AUTO,
            "ok",
            id="deepspeed 0.18 takes the warm-up of 0 that transformers 4.57 fills in",
        ),
        pytest.param(
            packages(transformers="4.31.0", deepspeed="0.8.3"),
            RunNeeds(),
            "warn",
            id="transformers 4.31 asks for deepspeed 0.9.3",
        ),
        pytest.param(
            packages(transformers="4.30.2", deepspeed="0.8.3"),
            RunNeeds(),
            "ok",
            id="transformers 4.30 takes deepspeed 0.8.3",
        ),
        pytest.param(
            packages(transformers="4.14.1", deepspeed="0.5.3"),
            RunNeeds(),
            "warn",
            id="transformers 4.14.1 asks for deepspeed 0.5.7",
        ),
        pytest.param(
            packages(transformers="4.5.1", deepspeed="0.3.10"),
            RunNeeds(),
            "ok",
            id="nothing is known of what transformers 4.5 asks for",
        ),
    ],
)
def test_rows(found: Packages, run: RunNeeds, expected: str) -> None:
    check = transformers_deepspeed_incompatible.transformers_suits_deepspeed
    assert judge(check, packages=found, run_needs=run).status == expected


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        pytest.param(
            packages(transformers="5.20.0", torch="2.3.1"),
            "'transformers<5.0'",
            id="the newest transformers for torch 2.3",
        ),
        pytest.param(
            packages(transformers="4.38.2", accelerate="0.20.3"),
            "'accelerate>=0.21.0,<1.0'",
            id="an accelerate that is new enough, but not too new",
        ),
        pytest.param(
            packages(transformers="4.36.2", accelerate="1.15.0"),
            "'accelerate>=0.20.1,<1.0'",
            id="an accelerate before 1.0",
        ),
    ],
)
def test_the_release_to_install_is_named(found: Packages, hint: str) -> None:
    check = transformers_deepspeed_incompatible.transformers_suits_deepspeed
    assert hint in judge(check, packages=found, run_needs=HF).worst.hint


def test_a_newer_floor_is_read_from_the_metadata_of_transformers() -> None:
    """transformers states it for its extra `torch`, and later releases may raise it."""
    found = msgspec.structs.replace(
        packages(transformers="6.0.0", torch="2.6.0", accelerate="1.15.0"),
        requires={
            "transformers": (
                'tokenizers>=0.23; extra == "torch"',
                'torch<3,>=2.9; extra == "torch"',
                'torch>=2.12; extra == "all"',
            )
        },
    )
    check = transformers_deepspeed_incompatible.transformers_suits_deepspeed
    finding = judge(check, packages=found, run_needs=HF).worst
    assert (finding.status.value, finding.evidence["needed"]) == ("fail", "2.9")


RESUMES = LaunchCommand(script="train.py", script_args=("--resume_from_checkpoint", "out/c-3"))


@pytest.mark.parametrize(
    ("transformers", "torch", "command", "expected"),
    [
        pytest.param(
            "4.46.3", "2.6.0", RESUMES, "warn", id="torch 2.6 refuses the Trainer's NumPy state"
        ),
        pytest.param("4.47.1", "2.6.0", RESUMES, "ok", id="the Trainer of 4.47 allows it"),
        pytest.param("4.46.3", "2.5.1", RESUMES, "ok", id="torch 2.5 reads anything"),
        pytest.param("4.50.3", "2.3.1", RESUMES, "ok", id="the Trainer of 4.50 lets it"),
        pytest.param("4.51.3", "2.3.1", RESUMES, "warn", id="that of 4.51 does not"),
        pytest.param("4.57.6", "2.3.1", RESUMES, "warn", id="that of 4.57 asks for torch 2.6"),
        pytest.param("4.57.6", "2.6.0", RESUMES, "ok", id="and torch 2.6 is installed"),
        pytest.param(
            "4.46.3",
            "2.6.0",
            LaunchCommand(script="train.py"),
            "ok",
            id="the run starts from scratch",
        ),
    ],
)
def test_a_trainer_that_does_not_read_its_own_checkpoints(
    transformers: str, torch: str, command: LaunchCommand, expected: str
) -> None:
    found = packages(transformers=transformers, torch=torch, deepspeed="0.19.8")
    check = transformers_deepspeed_incompatible.transformers_suits_deepspeed
    judged = judge(check, packages=found, run_needs=HF, launch_command=command)
    assert judged.status == expected
    assert expected == "ok" or "'transformers>=4.47" in judged.worst.hint
