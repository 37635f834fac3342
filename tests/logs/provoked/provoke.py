"""Provoke real failures of real software and keep their logs.

    python provoke.py --list
    python provoke.py NAME… --python PATIENT -o DIR      # the patient: a python with torch and deepspeed
    python provoke.py --all --python PATIENT -o DIR

Each scenario gets namespaces of its own (see ``scenarios/_bench.py``), so nothing outside a temporary folder changes
and only loopback can be reached. A log is kept only when it shows the failure it was made for. Linux only; wants root.

Labels are names of conditions, or: ``none`` (nothing is wrong), ``user-code`` (the script's own error), ``unrecognised``
(a real failure that has no condition, or whose log does not tell it). ``also_ok`` lists what a fair judge accepts too.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import os
import pkgutil
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import scenarios
from scenarios._bench import EXTRA, HOME, REGISTRY, RUN, TRAIN, Bench, Scenario

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
DEADLINE = 240  # of one scenario, all its commands together
KERNEL = os.uname().release.partition("-")[0]
SHORTEST_HOST = 4  # a shorter name of this machine is rather a word of the log (and inside, it is node-a anyway)
#: Where a scenario finds its folders, the environment and the caches before its own places hide them.
STAGE = Path("/mnt")
CGROUPS = Path("/sys/fs/cgroup")


def load() -> dict[str, Scenario]:
    """Import every family of scenarios."""
    for module in pkgutil.iter_modules(scenarios.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"scenarios.{module.name}")
    return REGISTRY


# ---------------------------------------------------------------- inside the namespaces


def inside(name: str, work: Path, venv: Path, cache: Path) -> int:
    """Set the stage and play one scenario; runs as the first process of its own namespaces."""

    def mount(*args: str | Path) -> None:
        subprocess.run(["mount", *map(str, args)], check=True)

    case = load()[name]
    mount("-t", "tmpfs", "tmpfs", STAGE)
    for source, at in ((work, "work"), (venv, "venv"), (cache, "cache")):
        (STAGE / at).mkdir()
        mount("--bind", source, STAGE / at)
    for place in ("/opt", "/tmp", "/home"):
        mount("-t", "tmpfs", "-o", "mode=1777,size=2g", "tmpfs", place)
    mount("-t", "tmpfs", "-o", "size=1g", "tmpfs", "/dev/shm")
    for folder in (RUN, HOME, TRAIN, EXTRA):
        folder.mkdir(parents=True)
    mount("--bind", STAGE / "venv", TRAIN)
    if case.extra:
        mount("--bind", STAGE / "cache/extra", EXTRA)
    if case.warm:
        ops = HOME / ".cache/torch_extensions"
        ops.mkdir(parents=True)
        mount("--bind", STAGE / "cache/ops", ops)
    etc = {
        "hosts": "127.0.0.1 localhost\n127.0.0.1 node-a\n",
        "resolv.conf": "",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
        "hostname": "node-a\n",
    }
    for file, text in etc.items():
        (STAGE / file).write_text(text)
        mount("--bind", STAGE / file, f"/etc/{file}")
    socket.sethostname("node-a")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.chdir(RUN)
    bench = Bench(STAGE / "work/log")
    bench.log.touch()
    code = case.play(bench)
    (STAGE / "work/code").write_text(str(code))
    return 0


# ---------------------------------------------------------------- outside


def ask(python: Path, code: str) -> str:
    """Let the patient's python print something."""
    return subprocess.run(
        [str(python), "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def versions_of(python: Path, packages: Sequence[str]) -> dict[str, str]:
    """Versions of the patient's packages."""
    code = f"import importlib.metadata as m; print(*map(m.version, {list(packages)!r}))"
    return dict(zip(packages, ask(python, code).split(), strict=True))


def fetch_extra(python: Path, cache: Path, requirement: str) -> None:
    """Unpack one pinned requirement, without its dependencies, into ``cache/extra/NAME``."""
    spec = requirement.removeprefix("sdist:")
    target = cache / "extra" / re.sub(r"[^A-Za-z0-9.]+", "-", spec)
    if target.is_dir():
        return
    pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check"]
    if requirement.startswith("sdist:"):
        with tempfile.TemporaryDirectory() as folder:
            command = [
                *pip,
                "download",
                "--no-deps",
                "--no-build-isolation",
                "--no-binary",
                ":all:",
                "-d",
                folder,
            ]
            subprocess.run([*command, spec], check=True)
            archive = next(Path(folder).glob("*.tar.gz"))
            target.mkdir(parents=True)
            subprocess.run(
                ["tar", "-xf", str(archive), "-C", str(target), "--strip-components=1"], check=True
            )
    else:
        subprocess.run([*pip, "install", "--no-deps", "--target", str(target), spec], check=True)


def sanitise(text: str, venv: Path, work: Path, base: str) -> str:
    """Take out what names this machine; every other byte stays."""
    swaps = {
        str(work): str(RUN),
        str(venv): str(TRAIN),
        base: "/usr/local",
        str(REPOSITORY) + "/": "",
        str(REPOSITORY): ".",
        str(Path.home()): str(HOME),
        os.uname().release: KERNEL,
    }
    for old, new in sorted(swaps.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(old, new)
    host = socket.gethostname()
    return re.sub(rf"\b{re.escape(host)}\b", "node-a", text) if len(host) >= SHORTEST_HOST else text


def missing(case: Scenario) -> list[str]:
    """What the scenario needs and this machine lacks."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [
        need
        for need in case.needs
        if (os.geteuid() != 0 if need == "root" else not shutil.which(need, path=path))
    ]


def provoke(
    case: Scenario, python: Path, cache: Path, versions: dict[str, str], base: str
) -> tuple[str, dict[str, object]]:
    """Play one scenario in fresh namespaces; its log and its row of the index."""
    venv = python.parent.parent
    for requirement in case.extra:
        fetch_extra(python, cache, requirement)
    (cache / "ops").mkdir(parents=True, exist_ok=True)
    for lock in (cache / "ops").glob("*/*/lock"):  # of a scenario killed while it built
        lock.unlink()
    work = Path(tempfile.mkdtemp(prefix="provoke-"))
    work.chmod(0o755)
    try:
        namespaces = [
            "--mount",
            "--net",
            "--uts",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        if os.geteuid() != 0:
            namespaces.insert(0, "--map-root-user")
        command = [
            "nice",
            "-n",
            "10",
            "unshare",
            *namespaces,
            sys.executable,
            str(HERE / "provoke.py"),
            "--inside",
        ]
        command += [case.name, "--work", str(work), "--python", str(python), "--cache", str(cache)]
        started = time.monotonic()
        try:
            subprocess.run(command, check=True, timeout=DEADLINE)
        finally:
            for group in CGROUPS.glob("*/provoke-*"):
                time.sleep(0.2)
                group.rmdir()
        text = (work / "log").read_bytes().decode(errors="backslashreplace")
        code = int((work / "code").read_text())
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = sanitise(text, venv, work, base)
    row: dict[str, object] = {
        "name": case.name,
        "file": f"logs/{case.name}.log",
        "label": case.label,
        "also_ok": list(case.also_ok),
        "made_with": {
            **versions,
            **versions_of(python, case.packages),
            **{k: v for k, _, v in (e.removeprefix("sdist:").partition("==") for e in case.extra)},
        },
        "exit_code": code,
        "date": dt.datetime.now(tz=dt.timezone.utc).date().isoformat(),
        "note": case.note,
    }
    if case.simulated:
        row["simulated"] = case.simulated
    print(
        f"{case.name}: exit {code}, {len(text)} characters, {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return text, row


def keep(folder: Path, row: dict[str, object], text: str) -> None:
    """Write a log and its row."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / str(row["file"])).write_bytes(text.encode())
    index = folder / "index.json"
    rows: list[dict[str, object]] = json.loads(index.read_text()) if index.exists() else []
    rows = sorted(
        [*(r for r in rows if r["name"] != row["name"]), row], key=lambda r: str(r["name"])
    )
    index.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def relabel(folder: Path, cases: dict[str, Scenario]) -> int:
    """Renew what the scenarios say of kept logs; rows and logs without a scenario go."""
    rows = []
    for row in json.loads((folder / "index.json").read_text()):
        case = cases.get(str(row["name"]))
        if case and (folder / row["file"]).exists():
            row |= {"label": case.label, "also_ok": list(case.also_ok), "note": case.note}
            rows.append(row)
    (folder / "index.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    kept = {Path(row["file"]).name for row in rows}
    for log in (folder / "logs").iterdir():
        if log.name not in kept:
            log.unlink()
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="name every scenario and stop")
    parser.add_argument("--all", action="store_true", help="provoke every scenario")
    parser.add_argument(
        "--python", type=Path, default=Path(sys.executable), help="the patient's python"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=HERE, help="where logs/ and index.json go"
    )
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "provoke-cache")
    parser.add_argument(
        "--relabel", action="store_true", help="renew labels and notes in the index, and stop"
    )
    parser.add_argument("--inside", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    python: Path = args.python.absolute()
    if args.inside:
        return inside(args.inside, args.work, python.parent.parent, args.cache)
    cases = load()
    if args.list:
        for case in cases.values():
            family = case.play.__module__.rpartition(".")[2]
            print(f"{family:<11} {case.name:<36} {case.label:<34} {' '.join(case.needs)}".rstrip())
        return 0
    if args.relabel:
        return relabel(args.output, cases)
    names: list[str] = list(cases) if args.all else args.names
    unknown = [name for name in names if name not in cases]
    if unknown or not names:
        parser.error(
            f"no such scenario: {' '.join(unknown)}" if unknown else "name scenarios, or --all"
        )
    what = "import platform as p, importlib.metadata as m; print(p.python_version(), m.version('torch'), m.version('deepspeed'))"
    versions = dict(zip(("python", "torch", "deepspeed"), ask(python, what).split(), strict=True))
    gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False)
    versions |= {"gcc": gcc.stdout.strip(), "kernel": KERNEL}
    base = ask(python, "import sys; print(sys.base_prefix)")
    failed = 0
    for name in names:
        case = cases[name]
        if lacks := missing(case):
            print(f"{name}: skipped, lacks {', '.join(lacks)}")
            continue
        try:
            text, row = provoke(case, python, args.cache, versions, base)
        except (subprocess.SubprocessError, OSError) as problem:
            print(f"{name}: broke: {problem}")
            failed += 1
            continue
        if re.search(case.shows, text) and (row["exit_code"] == 0 or not name.startswith("ok_")):
            keep(args.output, row, text)
            continue
        failed += 1
        odd = args.cache / "not-reproduced"
        odd.mkdir(exist_ok=True)
        (odd / f"{name}.log").write_bytes(text.encode())
        print(f"{name}: exit {row['exit_code']}, did NOT show {case.shows!r}; see {odd / name}.log")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
