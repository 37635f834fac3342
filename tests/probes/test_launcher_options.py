"""Options that a launcher rejects, and that none of its own is among them."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import pytest

from dsdoctor.probes.launcher_options import ambiguous_option, rejected_option, stops_at_ambiguous

#: Prints the long options of the three parsers, as they are installed here.
PARSERS = """
import json, unittest.mock
import accelerate.commands.launch, torch.distributed.run
import argparse
from deepspeed.launcher import runner
taken = []
def keep(self, *args, **kwargs):
    taken.append(self)
    raise SystemExit(0)
with unittest.mock.patch.object(argparse.ArgumentParser, "parse_args", keep):
    try:
        runner.parse_args([])
    except SystemExit:
        pass
parsers = {
    "accelerate": accelerate.commands.launch.launch_command_parser(),
    "torchrun": torch.distributed.run.get_args_parser(),
    "deepspeed": taken[0],
}
print(json.dumps({
    name: [word for action in parser._actions for word in action.option_strings]
    for name, parser in parsers.items()
}))
"""


def test_no_option_of_the_installed_launchers_is_rejected() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARSERS], capture_output=True, text=True, check=True, timeout=500
    )
    parsers = json.loads(done.stdout.splitlines()[-1])
    for launcher, words in parsers.items():
        names = [word[2:].replace("-", "_") for word in words if word.startswith("--")]
        assert len(names) > 20
        for name in names:
            assert rejected_option(launcher, {name: ""}) == ""


@pytest.mark.parametrize(
    ("launcher", "options", "said"),
    [
        ("accelerate", {"num_proceses": "8"}, "the closest is `--num_processes`"),
        ("torchrun", {"nproc_per_nodes": "8"}, "the closest is `--nproc_per_node`"),
        ("deepspeed", {"includes": "a:0"}, "the closest is `--include`"),
        ("deepspeed", {"num_gpu": "8"}, ""),
        ("deepspeed", {"quite_new_option": "8"}, ""),
        ("torchrun", {"nproc_per_node": "eight"}, "expected a number, `auto`, `gpu` or `cpu`"),
        ("torchrun", {"nproc_per_node": "gpu"}, ""),
        ("torchrun", {"nproc_per_node": "$N"}, ""),
        ("accelerate", {"mixed_precision": "fp18"}, "expected `no`, `fp16`, `bf16` or `fp8`"),
        ("accelerate", {"fsdp_sharding_strategy": "1"}, ""),
        ("deepspeed", {"launcher": "foo", "hostfile": "h"}, "expected `pdsh`"),
        ("deepspeed", {"launcher": "OpenMPI", "hostfile": "h"}, ""),
        ("deepspeed", {"launcher": "foo"}, ""),
        ("srun", {"ntask": "8"}, ""),
    ],
    ids=[
        "a typo of accelerate", "a typo of torchrun", "a typo of deepspeed", "a prefix",
        "an option of a newer release", "a word as a count", "a word that torchrun knows",
        "a variable", "a precision", "an option of another plugin", "an unknown starter",
        "a starter in capitals", "a starter that one node does not need", "no launcher of ours",
    ],
)  # fmt: skip
def test_rows(launcher: str, options: dict[str, str], said: str) -> None:
    found = rejected_option(launcher, options)
    assert (found == "") == (said == "")
    assert said in found


@pytest.mark.parametrize(
    ("launcher", "words", "said"),
    [
        pytest.param("torchrun", "--lr 1 --run 3", "`--run-path` or `--run_path`", id="both forms"),
        pytest.param("torchrun", "--run_path x", "", id="an option by its whole name"),
        pytest.param("torchrun", "--stand", "", id="the beginning of one option"),
        pytest.param("torchrun", "-- --run 3", "", id="after two dashes"),
        pytest.param("deepspeed", "--num=3", "`--num_gpus` or `--num_nodes`", id="two options"),
        pytest.param("deepspeed", "--save out", "", id="one option of deepspeed"),
        pytest.param("accelerate", "--num 3", "", id="accelerate takes whole names"),
    ],
)
def test_an_option_of_the_script_may_be_ambiguous(launcher: str, words: str, said: str) -> None:
    found = ambiguous_option(launcher, words.split(), "3.11.9")
    assert (found == "") == (said == "")
    assert said in found
    assert ambiguous_option(launcher, words.split(), "3.14.0") == ""


def test_torchrun_and_deepspeed_stop_at_such_an_option() -> None:
    """With the parsers of this environment."""
    code = (
        "import sys; from {} as module;"
        "(getattr(module, 'get_args_parser', None) or (lambda: module))().parse_args(sys.argv[1:])"
    )
    for module, option in (
        ("torch.distributed import run", "--run"),
        ("deepspeed.launcher import runner", "--num"),
    ):
        at_it = stops_at_ambiguous(platform.python_version())
        for words, stops in ((["t.py", option, "3"], at_it), (["--", "t.py", option, "3"], False)):
            done = subprocess.run(
                [sys.executable, "-c", code.format(module), *words],
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            assert (done.returncode == 2 and "ambiguous option" in done.stderr) == stops
