"""Scripts that `recommend -o` writes: what is in a name is never run."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import clean_environment, dsdoctor

pytestmark = [
    pytest.mark.any_user,
    pytest.mark.skipif(os.name != "posix", reason="the scripts are for bash"),
]

#: Of scripts, folders and models; each would make a file if a shell looked into it.
NAMES = (
    "a b",
    "$(touch owned)",
    "`touch owned`",
    "x'; touch owned; 'y",
    'x"; touch owned; "y',
    "x\ntouch owned\ny",
    "x # y",
    "$IFS",
    "${x:=$(touch owned)}",
    "a*?[!b]",
    "~",
    "a\\",
    "é\u2028b",
    "!!",
    "&& touch owned",
    "a=$(touch owned)",
)
LAUNCHERS = ("deepspeed", "torchrun", "accelerate")
#: Each name with one of them, each of them with names of every kind.
CASES = [(name, LAUNCHERS[number % 3]) for number, name in enumerate(NAMES)]
STUB = """#!{python}
import json, os, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
with open({noted!r}, "a") as file:
    print(json.dumps(words), file=file)
if words[0] == "scontrol":
    print("n1\\nn2")
elif words[0] == "srun":
    os.execvp(words[2], words[2:])
"""


def stubs(tmp_path: Path) -> tuple[Path, Path]:
    """Launchers that note their words."""
    noted, folder = tmp_path / "noted", tmp_path / "bin"
    folder.mkdir()
    for name in ("deepspeed", "torchrun", "accelerate", "srun", "scontrol"):
        path = folder / name
        path.write_text(STUB.format(python=sys.executable, noted=str(noted)))
        path.chmod(0o755)
    return folder, noted


def ran(script: Path, tmp_path: Path, **env: str) -> list[list[str]]:
    """What a script started."""
    folder, noted = stubs(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        ["bash", str(script), "last word"],
        env={**clean_environment(tmp_path), "PATH": f"{folder}:/usr/bin:/bin", **env},
        cwd=work, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(work.iterdir()) == [], "a name was run"
    return [json.loads(line) for line in noted.read_text().splitlines()]


@pytest.mark.parametrize(("name", "launcher"), CASES)
def test_a_launch_script_passes_names_on_as_they_are(
    tmp_path: Path, name: str, launcher: str
) -> None:
    model = tmp_path / "model.json"
    model.write_text(
        json.dumps(
            {
                "_name_or_path": name, "model_type": "gpt2", "n_layer": 2, "n_embd": 64,
                "n_head": 2, "vocab_size": 100, "n_positions": 128,
            }
        )
    )  # fmt: skip
    folder, script = tmp_path / f"run {name}", f"{name}.py"
    words = ["--model", str(model), "--no-measure", "--gpu-memory", "80", "--gpu-count", "2"]
    words += ["--launcher", launcher, "--script", script, "-o", str(folder)]
    done = dsdoctor("recommend", *words, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 0, done.err
    assert not (tmp_path / "owned").exists()
    launch = folder / "launch.sh"
    assert launch.stat().st_mode & stat.S_IXUSR
    (found,) = ran(launch, tmp_path)
    assert found[0] == launcher
    assert script in found
    assert found[-1] == "last word"
    assert str(folder / "ds_config.json") in found


@pytest.mark.parametrize(("name", "launcher"), CASES)
def test_a_slurm_script_does_so_through_two_shells(
    tmp_path: Path, name: str, launcher: str
) -> None:
    folder, script = tmp_path / f"run {name}", f"{name}.py"
    words = ["--model", "gpt2", "--gpu-memory", "80", "--gpu-count", "2", "--nodes", "2"]
    words += ["--launcher", launcher, "--slurm", "--script", script, "-o", str(folder)]
    done = dsdoctor("recommend", *words, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 0, done.err
    slurm = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1"}
    found = ran(folder / "job.sbatch", tmp_path, SLURM_NODEID="0", **slurm)
    assert [words[0] for words in found][:2] == ["scontrol", "srun"]
    last = found[-1]
    assert last[0] == ("accelerate" if launcher == "accelerate" else "torchrun")
    assert script in last
    assert str(folder / "ds_config.json") in last
