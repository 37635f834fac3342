"""Compares what two checkouts of dsdoctor report for the same machines and logs, wording aside.

    python benchmarks/compare_versions.py --other PATH [--only hook] [--show 20]

Machines are snapshots: the golden ones and those of the fake NVML library (with a C compiler).
Logs are the provoked ones of tests/logs. Hooks run as a scheduler runs them, over the same library;
smoke trains on two CPU ranks, as it is and with a fault of each kind, and takes minutes.

Compared are exit statuses, verdicts, statuses, conditions (by the earlier name where there is one),
fixes, the keys of the evidence, the lines that prove a cause, and the first error; not messages,
hints, titles and times. Of a smoke run, whose ranks die in any order, the outcome is compared: the
phases, the causes, the settings, and which figures there are. A hook or smoke run that differs is
run once more, since ports and shared memory of this machine may change between the two versions.
Exit status 1 if they differ.

Both versions run in the interpreter that runs this script, with its packages.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: Runs many command lines in one process of either version.
RUNNER = """
import contextlib, io, json, sys
from dsdoctor.cli.main import run
for line in sys.stdin:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(json.loads(line))
    out.flush()
    print(json.dumps([status, out.buffer.getvalue().decode()]), file=sys.__stdout__, flush=True)
"""
_WORDS = frozenset(
    ("message", "effect", "hint", "title", "summary", "seconds", "notes", "unread", "text")
)
#: Keys of a hook's verdict file that differ between two runs, or contain sentences.
_OF_ONE_RUN = frozenset(("reason", "detail", "token", "time", "begun", "boot_id"))
#: Which hooks are run, with their options.
HOOKS = {
    "slurm-prolog": ("--gpus", "all"),
    "k8s": (),
    "nagios": (),
}
#: Seconds to a decision; both versions get more than they need, or a busy machine would decide.
HOOK_BUDGET = 30
#: Runs of smoke by name; `{config}` is a config whose batch sizes contradict each other.
SMOKES = {
    "passes": (),
    "torchrun": ("--launcher", "torchrun"),
    "killed": ("--fault", "kill@1"),
    "diverged": ("--fault", "nan@0"),
    "corrupt": ("--fault", "corrupt@1"),
    "launcher-killed": ("--fault", "runner@0"),
    "batch": ("--config", "{config}"),
}
BAD_BATCH = {"train_batch_size": 7, "gradient_accumulation_steps": 1}
SECONDS = 1800


class Answer(NamedTuple):
    """The answer of one version: its exit status and its document."""

    status: int
    document: Any


#: Name of a machine, log or run; the answer of this version; the answer of the other.
Rows = list[tuple[str, Answer, Answer]]


def snapshots(folder: Path) -> Iterator[Path]:
    """The machines, as files."""
    from dsdoctor.model.snapshot import of
    from tests.golden.test_golden import FOLDER, MACHINES

    yield from sorted(FOLDER.glob("snapshot-v*.json"))
    for name, facts in MACHINES.items():
        path = folder / f"golden-{name}.json"
        path.write_bytes(of(facts).to_json())
        yield path
    from tests.nvml import fakenvml

    if fakenvml.find_compiler() is None:
        print("no C compiler: the NVML machines are left out", file=sys.stderr)
        return
    from dsdoctor.collect import collect
    from dsdoctor.model.facts.run import RunNeeds
    from dsdoctor.probes import builtin
    from tests.nvml import hosts, scenarios
    from tests.nvml.test_whole_check import AROUND, CHOICE, SOFTWARE

    for name, build in scenarios.ALL.items():
        place = folder / name
        place.mkdir()
        software = SOFTWARE.get(name, hosts.Software())
        host = hosts.WholeHost(build(), place, software, **copy.deepcopy(AROUND.get(name, {})))
        path = folder / f"nvml-{name}.json"
        given = [RunNeeds(cwd="/home/user"), CHOICE]
        path.write_bytes(collect(host, given, builtin()).to_json())
        yield path


def interpreter_of(checkout: Path, folder: Path) -> Path:
    """A virtual environment of a checkout over the packages of this one.

    Hooks and workers are started with `-I`, which ignores PYTHONPATH.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    inside = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    places = (checkout, checkout / "checks", sysconfig.get_path("purelib"))
    (Path(inside) / "compared.pth").write_text("".join(f"{place}\n" for place in places))
    return folder / "bin" / "python"


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "NO_COLOR": "1", **more}


def answers(python: Path, lines: list[list[str]]) -> list[Answer]:
    """Exit status and document of each command line, by the dsdoctor of an interpreter."""
    done = subprocess.run(
        [python, "-c", RUNNER],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=_environment(),
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if len(rows) != len(lines):
        raise SystemExit(f"`{python}` ended early: {done.stderr[-2000:]}")
    return [Answer(status, bare(json.loads(text or "null"))) for status, text in rows]


def _run(
    argv: Sequence[str | Path], env: dict[str, str], cwd: Path
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            argv, env=env, cwd=cwd, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        words = " ".join(map(str, argv))
        raise SystemExit(f"`{words}` did not end within {SECONDS} s") from None


def hook_answer(python: Path, kind: str, scenario: Any, folder: Path) -> Answer:
    """A hook as its scheduler runs it, on a machine of the fake NVML library."""
    from tests.nvml import fakenvml

    verdict = folder / "verdict.json"
    argv = [
        *(python, "-I", "-m", "dsdoctor", "hook", kind, *HOOKS[kind], "--json", verdict),
        *("--run-folder", folder / "run", "--budget", str(HOOK_BUDGET)),
    ]
    # nothing of this machine's own scheduler, but where its tools are
    env = {"PATH": os.defpath, "HOME": str(folder), **fakenvml.environment(scenario, folder)}
    env |= {"SLURMD_NODENAME": "n1", "DSDOCTOR_PYTHON": sys.executable}
    done = _run(argv, env, Path("/"))
    if not verdict.is_file():
        return Answer(done.returncode, None)
    document = bare(json.loads(verdict.read_text()))
    kept = {key: value for key, value in document.items() if key not in _OF_ONE_RUN}
    return Answer(done.returncode, kept)


def smoke_answer(python: Path, options: Sequence[str], folder: Path) -> Answer:
    """A short training run on two CPU ranks."""
    config = folder / "config.json"
    config.write_text(json.dumps(BAD_BATCH))
    words = [word.format(config=config) for word in options]
    argv = [
        *(python, "-I", "-m", "dsdoctor", "smoke", "--cpu", "2", "--steps", "3", "--no-bisect"),
        *("--python", sys.executable, "--format", "json", *words),
    ]
    env = _environment(XDG_STATE_HOME=str(folder / "state"))
    done = _run(argv, env, folder)
    return Answer(done.returncode, outcome(json.loads(done.stdout or "null")))


def outcome(report: Any) -> Any:
    """A report of smoke, without what differs between two runs of one version."""
    if not isinstance(report, dict):
        return report
    phases = [(row["name"], row["status"]) for row in report.get("phases", ())]
    figures = report.get("figures") or {}
    return {
        "keys": sorted(report),
        "verdict": report.get("verdict"),
        "phases": dict(phases),
        "ranks": len(report.get("ranks", ())),
        "figures": sorted(key for key, value in figures.items() if value not in (None, [], {})),
        "ds_config": (report.get("launch") or {}).get("ds_config"),
        "causes": bare(report.get("causes", [])),
    }


def bare(value: Any) -> Any:
    """A document without its wording; evidence of a finding by its keys."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: bare(item) for key, item in value.items() if key not in _WORDS}
    if "formerly" in found and found.get("condition"):
        found["condition"] = found.pop("formerly")[0]
    if isinstance(found.get("evidence"), dict):
        found["evidence"] = sorted(found["evidence"])
    if isinstance(found.get("findings"), list):
        found["findings"].sort(key=lambda row: json.dumps(row, sort_keys=True))
    return found


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where two documents differ, one line each."""
    if place == ".counts":
        return  # they follow from the findings
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif place == ".findings" and isinstance(one, list) and isinstance(other, list):
        here, there = ({row["id"]: row for row in rows} for rows in (one, other))
        for key in sorted(here.keys() & there.keys()):
            yield from differences(here[key], there[key], f"{place}[{key}]")
        for key in sorted(here.keys() ^ there.keys()):
            row = here.get(key) or there[key]
            bad = row["status"] not in ("ok", "skip")
            kind = "new condition" if key in here else "condition that is gone"
            yield f" {kind}: {row['condition']}" + (f" ({row['status']})" if bad else "")
    elif place == ".causes" and isinstance(one, list) and isinstance(other, list):
        names = [[row["condition"] for row in rows] for rows in (other, one)]
        if names[0] != names[1]:
            yield f"{place}.conditions: {names[0]} -> {names[1]}"
        for number, (here, there) in enumerate(zip(one, other, strict=False)):
            if here["condition"] == there["condition"]:
                yield from differences(here, there, f"{place}[{number}]")
    elif one != other:
        yield f"{place}: {json.dumps(other)[:160]} -> {json.dumps(one)[:160]}"


def kind_of(line: str) -> str:
    """What differs, without where and from what to what.

    >>> kind_of("golden-healthy.findings[DSD622].status: 1 -> 2"), kind_of("a new condition: x")
    ('.findings[DSD622].status', 'new condition: x')
    """
    head, _, rest = line.partition(": ")
    words = head.split(" ", 1)
    if len(words) > 1:
        return words[1] if words[1] == "exit status" else f"{words[1]}: {rest}"
    return head[head.index(".") :] if "." in head else head


def found_differences(rows: Rows) -> list[str]:
    """Where the answers of this version (first) and the other's (second) differ."""
    found = []
    for name, here, there in rows:
        if here.status != there.status:
            found.append(f"{name} exit status: {there.status} -> {here.status}")
        found += [f"{name}{line}" for line in differences(here.document, there.document)]
    return found


def report(what: str, rows: Rows, show: int) -> bool:
    """Prints the differences by kind; whether there are any."""
    found = found_differences(rows)
    print(f"{what}: {len(rows)} compared, {len(found)} differences", flush=True)
    kinds: dict[str, list[str]] = {}
    for line in found:
        kinds.setdefault(kind_of(line), []).append(line)
    for kind, lines in sorted(kinds.items(), key=lambda row: -len(row[1])):
        print(f"  {len(lines):4} × {kind}")
        for line in lines[:show]:
            print(f"         {line}")
    return bool(found)


def _by_file(argv: list[str], files: Sequence[Path], both: Sequence[Path]) -> Rows:
    lines = [[*argv, str(file)] for file in files]
    here, there = (answers(python, lines) for python in both)
    return [(file.stem, *pair) for file, *pair in zip(files, here, there, strict=True)]


def _by_run(
    run: Callable[[Path, str, Path], Answer], names: Sequence[str], both: Sequence[Path]
) -> Rows:
    def compared(name: str) -> tuple[str, Answer, Answer]:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            here, there = (
                run(python, name, Path(place))
                for python, place in zip(both, (one, other), strict=True)
            )
        return name, here, there

    rows = [compared(name) for name in names]
    return [compared(row[0]) if found_differences([row]) else row for row in rows]


def _machines(folder: Path, both: Sequence[Path]) -> Rows:
    place = folder / "machines"
    place.mkdir()
    return _by_file(["check", "--format", "json", "--from"], list(snapshots(place)), both)


def _logs(_folder: Path, both: Sequence[Path]) -> Rows:
    logs = sorted((ROOT / "tests" / "logs" / "provoked" / "logs").iterdir())
    return _by_file(["diagnose", "--format", "json"], logs, both)


def _hooks(_folder: Path, both: Sequence[Path]) -> Rows:
    from tests.nvml import fakenvml, scenarios

    if fakenvml.find_compiler() is None:
        print("no C compiler: hooks are left out", file=sys.stderr)
        return []

    def run(python: Path, name: str, place: Path) -> Answer:
        kind, _, scenario = name.partition("/")
        return hook_answer(python, kind, scenarios.ALL[scenario](), place)

    return _by_run(run, [f"{kind}/{name}" for kind in HOOKS for name in scenarios.ALL], both)


def _smokes(_folder: Path, both: Sequence[Path]) -> Rows:
    return _by_run(
        lambda python, name, place: smoke_answer(python, SMOKES[name], place), list(SMOKES), both
    )


PARTS: dict[str, Callable[[Path, Sequence[Path]], Rows]] = {
    "check": _machines,
    "diagnose": _logs,
    "hook": _hooks,
    "smoke": _smokes,
}


def main() -> int:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, required=True, help="checkout to compare with")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="compare these commands alone"
    )
    parser.add_argument("--show", type=int, default=3, help="differences to print of each kind")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "checks")]
    differ = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        both = [
            interpreter_of(checkout, folder / place)
            for place, checkout in (("here", ROOT), ("there", options.other.resolve()))
        ]
        for part in options.only or PARTS:
            differ |= report(part, PARTS[part](folder, both), options.show)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
