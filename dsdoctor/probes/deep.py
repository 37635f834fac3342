"""What `--deep` tries: a kernel, memory and copies on GPUs, an all-reduce among ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsdoctor.api import Environment, Gpus, RunNeeds, TorchLive, probe
from dsdoctor.host import Host, HostError
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.deep import (
    DeepTrial,
    ExtensionTrial,
    TriedCollective,
    TriedGpu,
    TriedPair,
)
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.process import Result

#: A kernel and an allocation; most of it is the import of torch.
GPU_SECONDS = 60.0
#: All copies between GPUs.
PAIRS_SECONDS = 60.0
#: Time limit of the ranks of the all-reduce, and how much longer their parent may take.
COLLECTIVE_SECONDS = 50.0
GRACE_SECONDS = 10.0
#: Compiling torch's headers takes a slow machine a minute.
EXTENSION_SECONDS = 150.0
#: GPUs that are tried in parallel: each child imports torch and has a context.
AT_ONCE = 4
#: Ranks of the all-reduce if there are no GPUs.
CPU_RANKS = 2

Records = Sequence[Mapping[str, Any]]


def names_of(
    run: RunNeeds, gpus: Gpus | Missing, live: TorchLive, env: Environment | Missing
) -> list[str]:
    """The GPUs to try, as values of CUDA_VISIBLE_DEVICES."""
    if live.cuda_ok is not True:
        return []
    by_index = {} if isinstance(gpus, Missing) else {gpu.index: gpu.uuid for gpu in gpus.gpus}
    if run.gpus:
        return [by_index.get(int(name)) or name if name.isdecimal() else name for name in run.gpus]
    visible = None if isinstance(env, Missing) else env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [token.strip() for token in visible.split(",") if token.strip()]
    uuids = [uuid for uuid in by_index.values() if uuid]
    if len(uuids) == len(live.devices):
        return uuids
    return [str(device.index) for device in live.devices]


def _ending(result: Result, limit: float) -> str:
    if result.timed_out:
        return f"it did not end within {limit:g} s"
    if result.returncode is not None and result.returncode < 0:
        return f"the process died of signal {-result.returncode}"
    return f"the process ended with status {result.returncode}: {result.error_text}"


def parse_one(name: str, records: Records, result: Result) -> TriedGpu:
    """The outcome of `deep_gpu.py one`."""
    fields: dict[str, Any] = {"hung": result.timed_out}
    short = {"kernel": "kernel", "allocation": "alloc"}
    for record in records:
        step = short.get(str(record.get("did")))
        if step is None:
            continue
        fields[f"{step}_ok"] = bool(record.get("ok"))
        fields[f"{step}_error"] = record.get("error")
        if step == "alloc":
            fields["free_bytes"] = record.get("free")
            fields["alloc_bytes"] = record.get("size")
    if not any(record.get("done") for record in records):
        steps = [record["step"] for record in records if record.get("step") in short]
        last = short[str(steps[-1])] if steps else "kernel"
        if f"{last}_ok" not in fields:
            fields[f"{last}_ok"] = False
            fields[f"{last}_error"] = _ending(result, GPU_SECONDS)
    return TriedGpu(name=name, **fields)


def parse_pairs(
    names: Sequence[str], records: Records, result: Result
) -> tuple[tuple[TriedPair, ...], str | None]:
    """The outcome of `deep_gpu.py pairs`, and why it did not finish."""
    pairs = []
    told = set()
    for record in records:
        if record.get("did") != "copy":
            continue
        a, b = int(record["a"]), int(record["b"])
        told.add((a, b))
        pairs.append(
            TriedPair(
                a=names[a],
                b=names[b],
                peer=record.get("peer"),
                ok=bool(record.get("ok")),
                error=record.get("error"),
            )
        )
    if any(record.get("done") for record in records):
        return tuple(pairs), None
    why = _ending(result, PAIRS_SECONDS)
    begun = [(int(r["a"]), int(r["b"])) for r in records if r.get("step") == "copy"]
    if begun and begun[-1] not in told:
        a, b = begun[-1]
        pairs.append(TriedPair(a=names[a], b=names[b], ok=False, error=why))
    return tuple(pairs), why


def parse_collective(backend: str, ranks: int, records: Records, result: Result) -> TriedCollective:
    """The outcome of `deep_collective.py`."""
    outcomes = {int(r["rank"]): r for r in records if "rank" in r}
    died = {int(r["died"]): r.get("status") for r in records if "died" in r}
    end = next((record for record in records if record.get("done")), None)
    late = list(end.get("late") or ()) if end else [r for r in range(ranks) if r not in outcomes]
    wrong = [number for number, record in sorted(outcomes.items()) if not record.get("ok")]
    if died:
        number = min(died)
        words = f"its process ended with status {died[number]}"
        return TriedCollective(
            backend=backend, ranks=ranks, ok=False, rank=number, error=words, hung=bool(late)
        )
    if wrong:
        return TriedCollective(
            backend=backend,
            ranks=ranks,
            ok=False,
            rank=wrong[0],
            error=str(outcomes[wrong[0]].get("error")),
            hung=bool(late),
        )
    if late or result.timed_out:
        words = f"it did not end within {COLLECTIVE_SECONDS:g} s"
        return TriedCollective(
            backend=backend,
            ranks=ranks,
            ok=False,
            rank=late[0] if late else None,
            error=words,
            hung=True,
        )
    if len(outcomes) < ranks:
        return TriedCollective(
            backend=backend, ranks=ranks, ok=False, error=_ending(result, COLLECTIVE_SECONDS)
        )
    return TriedCollective(backend=backend, ranks=ranks, ok=True)


@probe
def deep_trial(
    host: Host,
    choice: PatientChoice,
    run: RunNeeds,
    gpus: Gpus | Missing,
    live: TorchLive,
    env: Environment | Missing,
) -> DeepTrial:
    """Tries GPUs and ranks, after NVML and torch have been read, because this creates contexts."""
    if not run.deep:
        raise HostError(Why.NOT_ASKED, "GPUs and ranks are tested only with `--deep`")
    if not live.imported.ok:
        raise HostError(Why.ABSENT, "torch cannot be imported, so nothing was tested")
    names = names_of(run, gpus, live, env)

    def child(
        script: str, *args: str, seconds: float, devices: str | None
    ) -> tuple[Records, Result]:
        variables = {} if devices is None else {"CUDA_VISIBLE_DEVICES": devices}
        return run_child(
            host, choice.executable, script, args, timeout=seconds, cwd=run.cwd, env=variables
        )

    def one(name: str) -> TriedGpu:
        return parse_one(name, *child("deep_gpu", "one", seconds=GPU_SECONDS, devices=name))

    tried: list[TriedGpu] = []
    if names:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only for `--deep`

        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            tried = list(pool.map(one, names))
    pairs: tuple[TriedPair, ...] = ()
    pairs_error = None
    several = len(names) > 1
    together = ",".join(names)
    if several:
        outcome = child("deep_gpu", "pairs", seconds=PAIRS_SECONDS, devices=together)
        pairs, pairs_error = parse_pairs(names, *outcome)
    backend, ranks = ("nccl", len(names)) if several else ("gloo", CPU_RANKS)
    args = (backend, str(ranks), f"{COLLECTIVE_SECONDS * float(getattr(host, 'scale', 1.0)):g}")
    seconds = COLLECTIVE_SECONDS + GRACE_SECONDS
    outcome = child(
        "deep_collective", *args, seconds=seconds, devices=together if several else None
    )
    return DeepTrial(
        gpus=tuple(tried),
        pairs=pairs,
        pairs_error=pairs_error,
        collective=parse_collective(backend, ranks, *outcome),
    )


def parse_extension(records: Records, result: Result) -> ExtensionTrial:
    """The outcome of `trial_extension.py`."""
    seconds = round(result.seconds, 1)
    for record in records:
        if "ok" in record:
            error = record.get("error")
            return ExtensionTrial(ok=bool(record["ok"]), error=error, seconds=seconds)
    steps = [str(record["step"]) for record in records if "step" in record]
    return ExtensionTrial(
        ok=False,
        error=_ending(result, EXTENSION_SECONDS),
        seconds=seconds,
        stopped_at=steps[-1] if steps else "import",
    )


@probe
def extension_trial(
    host: Host, choice: PatientChoice, run: RunNeeds, live: TorchLive
) -> ExtensionTrial:
    """Builds a trivial extension in the environment if `--deep` is passed."""
    if not run.deep:
        raise HostError(Why.NOT_ASKED, "an extension is built only with `--deep`")
    if not live.imported.ok:
        raise HostError(Why.ABSENT, "torch cannot be imported, so no extension was built")
    outcome = run_child(
        host, choice.executable, "trial_extension", timeout=EXTENSION_SECONDS, cwd=run.cwd
    )
    return parse_extension(*outcome)
