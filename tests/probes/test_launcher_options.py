"""Options that a launcher rejects, and that none of its own is among them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dsdoctor.probes.launcher_options import rejected_option

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
