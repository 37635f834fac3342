"""Combines facts of two machines: this environment on another machine, or another job on either.

`check --from FILE --config C` judges a job against a machine that was read elsewhere. `--node FILE`
combines that machine's driver, GPUs, topology and memory with this machine's packages and config.
`--like 8xH100-SXM` describes such a machine by its product. What is not known is missing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, read_machine
from dsdoctor.host import Host
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.fabric import FabricManager
from dsdoctor.model.facts.gpu import Gpus, GpuTopology, Nvml
from dsdoctor.model.facts.kernel_log import KernelLog
from dsdoctor.model.facts.launch import Hostfile, LaunchCommand, MasterAddress, MasterPort
from dsdoctor.model.facts.machine import LibCuda, NvidiaKernel, NvidiaSmi, OsInfo, Resources
from dsdoctor.model.facts.memory import MemoryDemand, MemoryDetail
from dsdoctor.model.facts.network import NcclFiles, Network
from dsdoctor.model.facts.pci import PciTree
from dsdoctor.model.facts.python import DamagedPackages, DeepSpeedLive, ModuleImports, TorchLive
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.facts.script import (
    ScriptCalls,
    ScriptImports,
    ScriptOptions,
    ScriptPaths,
    ScriptSyntax,
    TrainingJob,
)
from dsdoctor.model.facts.storage import Checkpoint, Storage
from dsdoctor.model.facts.toolchain import Compilers, CudaToolkits, ExtensionCache, Libaio
from dsdoctor.model.partial import Source
from dsdoctor.model.product_names import of_unknown_memory, products_named, similar
from dsdoctor.model.products import PRODUCTS
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.model.units import gib
from dsdoctor.packs.registry import Registry
from dsdoctor.probes.launch_files import resumed_by

#: Facts about the machine, whatever runs on it. Facts in none of these sets are the environment's.
NODE: frozenset[type[Fact]] = frozenset(
    {
        NvidiaKernel, Nvml, Gpus, GpuTopology, PciTree, NvidiaSmi, LibCuda, FabricManager,
        KernelLog, OsInfo, Resources, MemoryDetail, Network, NcclFiles, Storage,
    }
)  # fmt: skip
#: Facts about the job, which are read again for another job.
JOB: frozenset[type[Fact]] = frozenset(
    {DsConfig, LaunchCommand, Hostfile, TrainingJob, MemoryDemand, Checkpoint}
)
#: Facts about the script that its own interpreter and packages decide.
SCRIPT: frozenset[type[Fact]] = frozenset(
    {ScriptCalls, ScriptImports, ScriptOptions, ScriptPaths, ScriptSyntax}
)
#: Facts that can be read only where the environment runs; of a combination they are not known.
BOTH: frozenset[type[Fact]] = frozenset(
    {TorchLive, DeepSpeedLive, ModuleImports, DamagedPackages, MasterAddress, MasterPort}
)
#: Tools on one host; another host has its own, unless they share a file system.
TOOLS: frozenset[type[Fact]] = frozenset({CudaToolkits, Compilers, ExtensionCache, Libaio})
#: The reader of fields that `--like` fills in; they come from no line of a text.
DESCRIBED = "--like"
#: What is assumed of every machine that `--like` describes.
FREE = "all memory of its GPUs is free"
_NOT_TRIED = Missing(
    why=Why.NOT_ASKED, detail="this environment was not run on the machine that is checked"
)
#: A snapshot has one master address and one port; another job may use others.
_OTHER_JOB = Missing(why=Why.NOT_ASKED, detail="the machine was read for another job")
_OTHER_PACKAGES = Missing(
    why=Why.NOT_ASKED,
    detail="the script is not checked for another machine: its interpreter and packages are there",
)


def with_job(snapshot: Snapshot, run: RunNeeds, host: Host, registry: Registry) -> Snapshot:
    """The machine of a snapshot with another job, whose files are read here.

    Args:
        snapshot: the machine.
        run: the job, as options describe it.
        host: where its files are.
        registry: packs, for their probes.
    """
    run = resolve(run, host)
    facts = _facts_of_demand(snapshot)
    # the default hostfile is on the machine that is judged
    wanted = JOB if run.hostfile else JOB - {Hostfile}
    request = Request(run=run, host=host, given=facts, facts=wanted)
    read = read_machine(request, registry)
    made = _copy(snapshot)
    kinds: list[type[Fact]] = [*wanted, RunNeeds]
    kept = _pasted_files(made, run) if made.pasted else frozenset()
    for kind in kinds:
        if kind not in kept:
            _take(made, kind, read)
    _take_checkpoint(made, snapshot, run)
    if DsConfig in kept:  # the request names no config that can be read here
        mine = msgspec.structs.replace(
            made.run, config=snapshot.run.config, config_path=snapshot.run.config_path
        )
        made.put(mine)
    if run.command:
        _lose(made, (MasterAddress, MasterPort), _OTHER_JOB)
        _lose(made, SCRIPT, _OTHER_PACKAGES)
    return made


def _take_checkpoint(made: Snapshot, snapshot: Snapshot, run: RunNeeds) -> None:
    """Keeps the snapshot's checkpoint if the command resumes from it, whose files are there."""
    command = made.get(LaunchCommand)
    if run.checkpoint is not None or not isinstance(command, LaunchCommand):
        return
    given = resumed_by(command, run)
    if given is None:
        return
    saved, folder = snapshot.get(Checkpoint), snapshot.run.cwd
    there = posixpath.normpath(posixpath.join(folder, given))
    if isinstance(saved, Checkpoint) and there == posixpath.normpath(
        posixpath.join(folder, saved.path)
    ):
        made.put(msgspec.structs.replace(saved, resumed=True))
        return
    what = "text" if snapshot.pasted else "snapshot"
    detail = (
        f"the command resumes from `{given}`, which the {what} does not contain: pass a directory"
        " of this machine with `--checkpoint`"
    )
    _lose(made, (Checkpoint,), Missing(why=Why.NOT_ASKED, detail=detail))


def _pasted_files(made: Snapshot, run: RunNeeds) -> frozenset[type[Fact]]:
    """Files of the job that the paste contains and the request does not."""
    unread: dict[type[Fact], bool] = {DsConfig: run.config is None, Hostfile: not run.hostfile}
    return frozenset(
        kind for kind, missing in unread.items() if missing and kind.key() in made.facts
    )


def _facts_of_demand(snapshot: Snapshot) -> tuple[Fact, ...]:
    """Facts that determine how much memory the job needs; only those with all of their fields."""
    from dsdoctor.model.facts.machine import Environment  # noqa: PLC0415  # only for another machine
    from dsdoctor.model.facts.python import (  # noqa: PLC0415
        DeepSpeedInstall,
        ImportOutcome,
        TorchBuild,
    )

    # not those of the torch that is installed here
    unknown = ImportOutcome(ok=False)
    empty: list[Fact] = [TorchLive(imported=unknown), DeepSpeedLive(imported=unknown), TorchBuild()]
    kinds: list[type[Fact]] = [Gpus, Environment, DeepSpeedInstall, *map(type, empty)]
    whole = _copy(snapshot)
    whole.sources = {
        key: fields
        for key, fields in snapshot.sources.items()
        if any(source.reader != DESCRIBED for source in fields.values())
    }
    known = [whole.get(kind) for kind in kinds if kind.key() not in whole.sources]
    given = [fact for fact in known if isinstance(fact, Fact)]
    have = {type(fact) for fact in given}
    return (*given, *(fact for fact in empty if type(fact) not in have))


def composed(here: Snapshot, node: Snapshot, name: str) -> Snapshot:
    """This machine's environment and job on another machine.

    Args:
        here: provides packages, toolchain, variables and job.
        node: provides driver, GPUs, topology, memory and disks.
        name: what messages call that machine.
    """
    made = _copy(here)
    made.origin = f"this environment on {name}"
    made.assumed = node.assumed
    unstated = Missing(why=Why.NOT_ASKED, detail=f"not known for {name}")
    for kind in NODE:
        _take(made, kind, node)
        if kind.key() not in made.facts:
            made.missing.setdefault(kind.key(), unstated)
    _lose(made, BOTH, _NOT_TRIED)
    return made


def without_machine(here: Snapshot, why: str) -> Snapshot:
    """This machine's packages, variables and job, for other machines, which were not read.

    Args:
        here: what was read.
        why: why this machine does not count, with the other machines as its last words.
    """
    made = _copy(here)
    _lose(
        made,
        NODE | BOTH | TOOLS,
        Missing(why=Why.NOT_ASKED, detail=f"{why}, which were not read"),
    )
    return made


def _take(made: Snapshot, kind: type[Fact], source: Snapshot) -> None:
    """Replaces a fact, or the reason why it is missing, by that of another snapshot."""
    key = kind.key()
    made.facts.pop(key, None)
    made.missing.pop(key, None)
    made.sources.pop(key, None)
    if key in source.facts:
        made.facts[key] = source.facts[key]
        if key in source.sources:
            made.sources[key] = source.sources[key]
    elif key in source.missing:
        made.missing[key] = source.missing[key]


def _lose(made: Snapshot, kinds: Iterable[type[Fact]], missing: Missing) -> None:
    """Removes facts, which are then missing for one reason."""
    for kind in kinds:
        made.facts.pop(kind.key(), None)
        made.missing[kind.key()] = missing


def _copy(snapshot: Snapshot) -> Snapshot:
    return Snapshot(
        dsdoctor=snapshot.dsdoctor,
        created=snapshot.created,
        facts=dict(snapshot.facts),
        missing=dict(snapshot.missing),
        seconds=dict(snapshot.seconds),
        partial=snapshot.partial,
        redacted=snapshot.redacted,
        origin=snapshot.origin,
        pasted=snapshot.pasted,
        sources=dict(snapshot.sources),
        assumed=snapshot.assumed,
    )


_LIKE = re.compile(
    r"(?:(?P<count>[1-9]\d{0,2})(?: ?[x×*] ?| ))?(?P<name>\S.{0,60}?)"
    r"(?: ?[x×*] ?(?P<after>[1-9]\d{0,2}))?"
)

#: A number that `_LIKE` does not accept.
_NO_COUNT = re.compile(r"-?\d+ ?[x×*].")

#: Products of one name count as one if their memory differs by less than this factor: H100 with 80
#: and with 94 GB do, A100 with 40 and with 80 GB do not.
_ALIKE = 1.25


def machine_like(text: str, driver: str | None) -> Snapshot:
    """A machine with a number of GPUs of one product, about which nothing else is known.

    Args:
        text: `8xH100-SXM`, `RTX 4090`, or a product's full name as `nvidia-smi -L` prints it;
            without a number it is one GPU.
        driver: its driver's version.

    Raises:
        UsageError: no product or several products match, or `driver` is not a version.
    """
    count, full, others = _product_of(text)
    known = PRODUCTS[full]
    if driver is not None and not re.fullmatch(r"\d{3}(?:\.\d{1,4}){0,2}", driver):
        raise UsageError(
            f"`--driver {driver}` is not a driver's version; expected one such as `550.54.15`"
        )
    assumed = [FREE]
    if others:
        assumed.append(
            f"`{text}` is interpreted as {full} ({gib(known.mib << 20)} GiB); it may also mean "
            + " or ".join(f"{name} ({gib(PRODUCTS[name].mib << 20)})" for name in others)
        )
    snapshot = Snapshot(assumed=tuple(assumed))
    gpu = {
        "name": f"NVIDIA {full}",
        "cc_major": known.major,
        "cc_minor": known.minor,
        "memory_total_bytes": known.mib << 20,
        "memory_free_bytes": known.mib << 20,
    }
    gpus = [{"index": index, **gpu} for index in range(count)]
    fields = ["gpus", "count", "stopped_at"]
    fields += [f"gpus.{index}.{name}" for index in range(count) for name in ("index", *gpu)]
    _describe(snapshot, Gpus, {"gpus": gpus, "count": count, "stopped_at": None}, fields)
    if driver is not None:
        _describe(snapshot, Nvml, {"driver_version": driver}, ["driver_version"])
    return snapshot


def _product_of(text: str) -> tuple[int, str, list[str]]:
    """The number and the product that a value of `--like` means, and other products it may mean.

    Of products with one compute capability whose memory hardly differs, the smallest is taken.
    """
    found = _LIKE.fullmatch(text.strip())
    both = found is not None and found["count"] and found["after"]
    if found is None or both:
        raise _not_a_product(text, [])
    if _NO_COUNT.match(found["name"]) and not products_named(found["name"]):
        raise UsageError(
            f"`--like {text}`: expected a number of GPUs from 1 to 999, such as `8xH100-SXM`"
        )
    count = found["count"] or found["after"] or "1"
    names = products_named(found["name"])
    if not names:
        unknown = of_unknown_memory(found["name"])
        if unknown:
            raise UsageError(
                f"`--like {text}`: how much memory {' or '.join(unknown[:3])} has is in no table; "
                "run `dsdoctor snapshot -o FILE` on such a machine, then pass the file to "
                "`check --node` or `recommend --from`"
            )
        raise _not_a_product(text, similar(found["name"]))
    known = [PRODUCTS[name] for name in names]
    sizes = [product.mib for product in known]
    alike = len({(product.major, product.minor) for product in known}) == 1
    if not alike or max(sizes) > _ALIKE * min(sizes):
        several = ", ".join(f"`{count}x{name}`" for name in names)
        raise UsageError(
            f"`--like {text}` matches {len(names)} products; expected one of them: {several}"
        )
    least = names[sizes.index(min(sizes))]
    return int(count), least, [name for name in names if name != least]


def _not_a_product(text: str, near: list[str]) -> UsageError:
    expected = ", ".join(f"`8x{name}`" for name in near)
    return UsageError(
        f"`--like {text}` is not a known product; expected a number and a product, "
        f"such as {expected or '`8xH100-SXM` or `2xRTX 4090`'}"
    )


def _describe(
    snapshot: Snapshot, kind: type[Fact], values: dict[str, object], fields: list[str]
) -> None:
    """Stores a fact of which only these fields are known."""
    snapshot.facts[kind.key()] = values
    snapshot.sources[kind.key()] = dict.fromkeys(fields, Source(reader=DESCRIBED, line=0))
