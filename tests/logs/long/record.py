"""Records the runs of the long logs: `python tests/logs/long/record.py NAME… | --all`.

Needs root, Slurm, and an environment with torch, DeepSpeed, transformers and accelerate. A log is
kept only when it shows what it was made for. Namespaces and sanitising are those of `provoke.py`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "provoked"), str(HERE)]

import plays  # noqa: E402, F401
import provoke  # noqa: E402
from scenarios._bench import REGISTRY, Scenario  # noqa: E402

LARGEST = 60 << 10
provoke.HERE = HERE
provoke.load = lambda: REGISTRY


def record(case: Scenario, python: Path, cache: Path, base: str, into: Path) -> tuple[int, str]:
    """Plays a scenario and keeps its files; exit status and what the log shows."""
    venv = python.parent.parent
    (cache / "ops").mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="provoke-"))
    work.chmod(0o755)
    try:
        command = [
            "nice", "-n", "5", "unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork",
            "--kill-child", "--mount-proc", sys.executable, str(HERE / "record.py"), "--inside", case.name,
            "--work", str(work), "--python", str(python), "--cache", str(cache),
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True, timeout=400)
        finally:
            time.sleep(0.3)
            for group in provoke.CGROUPS.glob("*/provoke-*"):
                group.rmdir()
        files = {"train.log": work / "log"}
        extra = (
            sorted(p for p in (work / "beside").rglob("*") if p.is_file())
            if (work / "beside").is_dir()
            else []
        )
        if (work / "beside/launcher.log").exists():
            files = {}
        files |= {str(p.relative_to(work / "beside")): p for p in extra}
        texts = {
            name: provoke.sanitise(
                p.read_bytes().decode(errors="backslashreplace"), venv, work, base
            )
            for name, p in files.items()
        }
        code = int((work / "code").read_text())
    finally:
        shutil.rmtree(work, ignore_errors=True)
    texts = {
        name: text.replace(str(provoke.STAGE / "work/log"), "/home/user/slurm-1.out")
        for name, text in texts.items()
    }
    whole = "\n".join(texts.values())
    if re.search(case.shows, whole) is None:
        odd = cache / f"{case.name}.odd"
        odd.write_text(whole)
        raise RuntimeError(f"did not show {case.shows!r}; see {odd}")
    folder = into / "logs" / case.name
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in texts.items():
        path = folder / f"{name}.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(text.encode(), preset=9))
        if path.stat().st_size > LARGEST:
            raise RuntimeError(f"{path} is larger than {LARGEST} bytes")
    return code, whole


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--new", action="store_true", help="only what has no log yet")
    parser.add_argument("--relabel", action="store_true")
    parser.add_argument("--into", type=Path, default=HERE, help="where logs/ and index.json go")
    parser.add_argument("--inside")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "long-cache")
    args = parser.parse_args()
    python = args.python.absolute()
    if args.inside:
        return provoke.inside(args.inside, args.work, python.parent.parent, args.cache)
    base = provoke.ask(python, "import sys; print(sys.base_prefix)")
    versions = "import platform as p, importlib.metadata as m; print(p.python_version(), *[m.version(n) for n in ('torch','deepspeed','transformers','accelerate')])"
    made = dict(
        zip(
            ("python", "torch", "deepspeed", "transformers", "accelerate"),
            provoke.ask(python, versions).split(),
            strict=True,
        )
    )
    index = args.into / "index.json"
    rows = {row["name"]: row for row in json.loads(index.read_text())} if index.exists() else {}
    names = list(REGISTRY) if args.all or args.relabel else args.names
    failed = 0
    for name in names:
        case = REGISTRY[name]
        told = {"label": case.label, "also_ok": list(case.also_ok), "note": case.note}
        if case.simulated:
            told["simulated"] = case.simulated
        if args.relabel or (args.new and name in rows):
            if name in rows:
                rows[name].update(told)
            continue
        begun = time.monotonic()
        try:
            code, text = record(case, python, args.cache, base, args.into)
        except (RuntimeError, OSError, subprocess.SubprocessError) as problem:
            print(f"{name}: NOT recorded: {problem}", flush=True)
            failed += 1
            continue
        rows[name] = {
            "name": name,
            **told,
            "exit_code": code,
            "date": time.strftime("%Y-%m-%d"),
            "made_with": made,
        }
        index.write_text(
            json.dumps([rows[n] for n in sorted(rows)], indent=1, ensure_ascii=False) + "\n"
        )
        print(
            f"{name}: exit {code}, {len(text)} characters, {time.monotonic() - begun:.0f} s",
            flush=True,
        )
    index.write_text(
        json.dumps([rows[n] for n in sorted(rows)], indent=1, ensure_ascii=False) + "\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
