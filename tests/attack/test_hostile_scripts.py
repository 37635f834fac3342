"""Scripts that are written to exhaust who reads them: bounded, and without a traceback."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dsdoctor.api import Missing, Packages, RunNeeds
from dsdoctor.host import LocalHost
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.python import Package, PatientChoice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.script_calls import script_calls
from dsdoctor.probes.script_options import script_options
from dsdoctor.probes.script_paths import script_paths
from dsdoctor.testing import read
from tests.support.command import clean_environment

MAIN = "import argparse\nfrom transformers import *\np = argparse.ArgumentParser()\n"
END = "p.parse_args()\ndeepspeed.initialize(config='ds.json')\n"
N = 12_000
CLASSES = "from dataclasses import dataclass\nfrom transformers import HfArgumentParser\n" + "".join(
    f"@dataclass\nclass C{n}(C{n + 1}, D{n + 1}):\n    x{n}: int = 1\nD{n} = C{n}\n"
    f"@dataclass\nclass D{n}(C{n + 1}, D{n + 1}):\n    y{n}: int = 1\n"
    for n in range(60)
) + "HfArgumentParser(C0).parse_args_into_dataclasses()\n"  # fmt: skip
SCRIPTS = {
    "a deep expression": f"{MAIN}x = a{'.a' * 2500}\n{END}",
    "many deep expressions": MAIN + f"x = a{'.a' * 150}\n" * 3000 + END,
    "aliases in reverse order": MAIN
    + "".join(f"p{n} = p{n - 1}\n" for n in range(N, 0, -1))
    + "p0 = p\n"
    + END,
    "functions that pass the parser on": MAIN
    + "".join(f"def f{n}(a{n}):\n    return f{n + 1}(a{n})\n" for n in range(N // 4))
    + "f0(p)\n"
    + END,
    "many options": MAIN + "".join(f"p.add_argument('--o{n}')\n" for n in range(N)) + END,
    "many calls": MAIN + "".join(f"load{n}(a=1)\nopen('f{n}')\n" for n in range(N)) + END,
    "many names": "".join(f"from transformers import N{n}\nN{n}(a=1)\n" for n in range(N)) + END,
    "bases that branch": CLASSES,
    "a base of itself": CLASSES.replace("class C59(C60, D60)", "class C59(C59, C59)"),
    "imports in a circle": "from near import Config\nfrom transformers import HfArgumentParser\n"
    "HfArgumentParser(Config).parse_args_into_dataclasses()\n",
    "choices of one number": MAIN + "p.add_argument('--x', choices=5)\n" + END,
    "the name of a lone dash": MAIN + "p.add_argument('-', '')\n" + END,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_takes_bounded_time(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.py").write_text(SCRIPTS[name])
    (tmp_path / "near.py").write_text("from far import Config\n")
    (tmp_path / "far.py").write_text("from near import Config\n")
    words = ("torchrun", "t.py", *(f"--x{n}" for n in range(900)))
    host = LocalHost(clean_environment(tmp_path))
    run = RunNeeds(cwd=str(tmp_path), command=words)
    package = Package(name="transformers", version="5.0", location=str(tmp_path))
    facts = {
        "run_needs": run,
        "launch_command": parse_command(words),
        "patient_choice": PatientChoice(executable="python", chosen_by="--python"),
        "packages": Packages(packages={"transformers": package}),
    }
    start = time.process_time()
    resolve(run, host)
    for probe in (script_options, script_calls, script_paths):
        found = read(probe, host, **facts)
        assert not isinstance(found, Missing) or not found.is_unknown
    assert time.process_time() - start < 60
