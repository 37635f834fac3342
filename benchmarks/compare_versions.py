"""What another checkout of dsdoctor says to the same machines and logs, wording aside.

    python benchmarks/compare_versions.py --other PATH [--show 20]

Machines are snapshots: the golden ones and those of the fake NVML library (with a C compiler).
Logs are the provoked ones of tests/logs. Compared are exit statuses, verdicts, statuses, conditions
(by the earlier name where there is one), fixes, the keys of the evidence, the lines that prove a
cause, and the first error; not messages, hints, titles and times. Exit status 1 where they differ.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def answers(checkout: Path, lines: list[list[str]]) -> list[tuple[int, str]]:
    """Exit status and output of each command line, by the dsdoctor of a checkout."""
    env = {**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'checks'}", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input="".join(json.dumps(line) + "\n" for line in lines),
        env=env,
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if len(rows) != len(lines):
        raise SystemExit(f"`{checkout}` ended early: {done.stderr[-2000:]}")
    return [(status, text) for status, text in rows]


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


def main() -> int:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, required=True, help="checkout to compare with")
    parser.add_argument("--show", type=int, default=3, help="differences to print of each kind")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "checks")]
    failed = False
    with tempfile.TemporaryDirectory() as name:
        machines = list(snapshots(Path(name)))
        logs = sorted((ROOT / "tests" / "logs" / "provoked" / "logs").iterdir())
        for what, argv, files in (
            ("check --from", ["check", "--format", "json", "--from"], machines),
            ("diagnose", ["diagnose", "--format", "json"], logs),
        ):
            lines = [[*argv, str(file)] for file in files]
            rows = zip(
                files, answers(ROOT, lines), answers(options.other.resolve(), lines), strict=True
            )
            found = []
            for file, (status, text), (old_status, old_text) in rows:
                if status != old_status:
                    found.append(f"{file.stem} exit status: {old_status} -> {status}")
                documents = [bare(json.loads(said or "null")) for said in (text, old_text)]
                found += [f"{file.stem}{line}" for line in differences(*documents)]
            print(f"{what}: {len(files)} compared, {len(found)} differences")
            kinds: dict[str, list[str]] = {}
            for line in found:
                kinds.setdefault(kind_of(line), []).append(line)
            for kind, rows_of_kind in sorted(kinds.items(), key=lambda row: -len(row[1])):
                print(f"  {len(rows_of_kind):4} × {kind}")
                for line in rows_of_kind[: options.show]:
                    print(f"         {line}")
            failed = failed or bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
