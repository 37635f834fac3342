"""All that a pack may import.

A *condition file* holds a docstring (its page), `CONDITION`, and a check, `SIGNATURES`, or both::

    @check(CONDITION)
    def toolkit_matches_torch(torch: TorchBuild, toolkits: CudaToolkits) -> Iterator[Finding]:
        ...

The type annotations are the dependencies. `X` gives the fact, or the check does not run and the
engine says why; `X | Missing` gives the fact or the reason; a `Limits` subclass gives thresholds.
A check that yields nothing is `ok`.

Over 400 lines because it lists every name that a pack may import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dsdoctor.host.door import Host, HostError
from dsdoctor.model.condition import Boilerplate, Condition, Level, Limits, Signature, TracebackRule
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.cluster import ClusterNode, ClusterNodes
from dsdoctor.model.facts.config import ClassParameters, ConfigRefusal, ConfigVerdict, DsConfig
from dsdoctor.model.facts.deep import (
    DeepTrial,
    ExtensionTrial,
    TriedCollective,
    TriedGpu,
    TriedPair,
)
from dsdoctor.model.facts.fabric import FabricManager
from dsdoctor.model.facts.gpu import (
    ComputeMode,
    EventReason,
    FabricHealth,
    FabricState,
    Gpu,
    GpuHealth,
    Gpus,
    GpuTopology,
    Nvml,
    NvmlError,
    RecoveryAction,
)
from dsdoctor.model.facts.job_end import EccCounts, JobRemains, LeftProcess
from dsdoctor.model.facts.kernel_log import BusEvents, FallenGpus, KernelLog, XidEvent
from dsdoctor.model.facts.launch import (
    DeepSpeedEnvFile,
    HostEntry,
    Hostfile,
    LaunchCommand,
    LaunchFiles,
    LaunchParse,
    LineProblem,
    MasterAddress,
    MasterPort,
    Numactl,
)
from dsdoctor.model.facts.machine import (
    ContainerRuntimes,
    Environment,
    LibCuda,
    NvidiaKernel,
    NvidiaSmi,
    OsInfo,
    PciGpu,
    Resources,
)
from dsdoctor.model.facts.memory import MemoryDemand, MemoryDetail
from dsdoctor.model.facts.network import (
    NcclFile,
    NcclFiles,
    NcclPlugins,
    NcclSetting,
    NetInterface,
    Network,
    NodeReach,
    NodesReach,
    RdmaPort,
)
from dsdoctor.model.facts.pci import PciPlace, PciTree
from dsdoctor.model.facts.python import (
    CertificatePaths,
    CudaDevice,
    DamagedPackage,
    DamagedPackages,
    DeepSpeedInstall,
    DeepSpeedLive,
    ImportOutcome,
    Launcher,
    Launchers,
    LibraryPath,
    LibraryShadow,
    ModuleImports,
    Package,
    Packages,
    Patient,
    PythonPath,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.facts.repair import (
    FreePort,
    InstalledGcc,
    OtherToolkits,
    PackageManagers,
    RepairFiles,
    StaleBuilds,
    ToolkitArchives,
    ToolkitWheels,
    Wheel,
)
from dsdoctor.model.facts.run import (
    ContainerStart,
    Floors,
    ManifestContainer,
    PlanNeeds,
    RunNeeds,
    Scope,
)
from dsdoctor.model.facts.script import (
    CallSetting,
    MissingPath,
    ScriptCalls,
    ScriptImports,
    ScriptOptions,
    ScriptPaths,
    ScriptSyntax,
    TrainingJob,
    UncachedName,
    WrongArgument,
)
from dsdoctor.model.facts.storage import Checkpoint, CheckpointFile, Place, Quota, Storage
from dsdoctor.model.facts.toolchain import (
    BuildLock,
    Compiler,
    Compilers,
    CudaToolkits,
    ExtensionCache,
    Libaio,
    Toolkit,
)
from dsdoctor.model.finding import (
    Finding,
    Status,
    fail,
    fixed_by,
    of_job,
    ok,
    skip,
    warn,
    without_fix,
)
from dsdoctor.model.fix_plan import (
    Env,
    Fetch,
    Findings,
    FixRequest,
    Impossible,
    Link,
    LinkNames,
    LinkTree,
    Plan,
    Proof,
    Reach,
    Remove,
    Run,
    Step,
    Tell,
    Write,
    prepended,
    reach_of,
)
from dsdoctor.model.observation import Observation
from dsdoctor.model.partial import NotStated, is_partial
from dsdoctor.model.ranks import Ranks, has_gpu_ids, ranks_of, visible_count
from dsdoctor.model.units import whole

__all__ = [
    "Boilerplate",
    "BuildLock",
    "BusEvents",
    "CallSetting",
    "CertificatePaths",
    "Check",
    "Checkpoint",
    "CheckpointFile",
    "ClassParameters",
    "ClusterNode",
    "ClusterNodes",
    "Compiler",
    "Compilers",
    "ComputeMode",
    "Condition",
    "ConfigRefusal",
    "ConfigVerdict",
    "ContainerRuntimes",
    "ContainerStart",
    "CudaDevice",
    "CudaToolkits",
    "DamagedPackage",
    "DamagedPackages",
    "DeepSpeedEnvFile",
    "DeepSpeedInstall",
    "DeepSpeedLive",
    "DeepTrial",
    "DsConfig",
    "EccCounts",
    "Env",
    "Environment",
    "EventReason",
    "ExtensionCache",
    "ExtensionTrial",
    "FabricHealth",
    "FabricManager",
    "FabricState",
    "Fact",
    "FallenGpus",
    "Fetch",
    "Finding",
    "Findings",
    "Fix",
    "FixRequest",
    "Floors",
    "FreePort",
    "Gpu",
    "GpuHealth",
    "GpuTopology",
    "Gpus",
    "Host",
    "HostEntry",
    "HostError",
    "Hostfile",
    "ImportOutcome",
    "Impossible",
    "InstalledGcc",
    "JobRemains",
    "KernelLog",
    "LaunchCommand",
    "LaunchFiles",
    "LaunchParse",
    "Launcher",
    "Launchers",
    "LeftProcess",
    "Level",
    "LibCuda",
    "Libaio",
    "LibraryPath",
    "LibraryShadow",
    "Limits",
    "LineProblem",
    "Link",
    "LinkNames",
    "LinkTree",
    "ManifestContainer",
    "MasterAddress",
    "MasterPort",
    "MemoryDemand",
    "MemoryDetail",
    "Missing",
    "MissingPath",
    "ModuleImports",
    "NcclFile",
    "NcclFiles",
    "NcclPlugins",
    "NcclSetting",
    "NetInterface",
    "Network",
    "NodeReach",
    "NodesReach",
    "NotStated",
    "Numactl",
    "NvidiaKernel",
    "NvidiaSmi",
    "Nvml",
    "NvmlError",
    "Observation",
    "OsInfo",
    "OtherToolkits",
    "Package",
    "PackageManagers",
    "Packages",
    "Patient",
    "PciGpu",
    "PciPlace",
    "PciTree",
    "Place",
    "Plan",
    "PlanNeeds",
    "Probe",
    "Proof",
    "PythonPath",
    "Quota",
    "Ranks",
    "RdmaPort",
    "Reach",
    "RecoveryAction",
    "Remove",
    "RepairFiles",
    "Resources",
    "Run",
    "RunNeeds",
    "Scope",
    "ScriptCalls",
    "ScriptImports",
    "ScriptOptions",
    "ScriptPaths",
    "ScriptSyntax",
    "Signature",
    "StaleBuilds",
    "Status",
    "Step",
    "Storage",
    "Tell",
    "Toolkit",
    "ToolkitArchives",
    "ToolkitWheels",
    "TorchBuild",
    "TorchLive",
    "TracebackRule",
    "TrainingJob",
    "TriedCollective",
    "TriedGpu",
    "TriedPair",
    "UncachedName",
    "Wheel",
    "Why",
    "Write",
    "WrongArgument",
    "XidEvent",
    "check",
    "fail",
    "fix",
    "fixed_by",
    "has_gpu_ids",
    "is_partial",
    "of_job",
    "ok",
    "prepended",
    "probe",
    "ranks_of",
    "reach_of",
    "skip",
    "visible_count",
    "warn",
    "whole",
    "without_fix",
]

CheckFunction = Callable[..., Iterable[Finding]]


class Check(msgspec.Struct, frozen=True):
    """A check function tied to its condition.

    Attributes:
        condition: what it looks for.
        function: judges facts; touches nothing.
    """

    condition: Condition
    function: CheckFunction


def check(condition: Condition) -> Callable[[CheckFunction], Check]:
    """Ties a function to the condition that it judges."""

    def tie(function: CheckFunction) -> Check:
        return Check(condition, function)

    return tie


class Probe(msgspec.Struct, frozen=True):
    """A function that reads one fact.

    Attributes:
        function: takes a Host, RunNeeds or other facts by annotation and returns a fact.
    """

    function: Callable[..., Any]


def probe(function: Callable[..., Any]) -> Probe:
    """Marks a function as a probe; its return annotation names the fact that it reads.

    A probe with a tuple annotation (`-> tuple[TorchLive, DeepSpeedLive]`) reads several facts.
    """
    return Probe(function)


class Fix(msgspec.Struct, frozen=True):
    """A fix: a pure function from facts to a plan.

    Attributes:
        name: kebab-case, an imperative (`remove-stale-lock`).
        reach: the least reach with which it can do anything.
        function: returns a Plan, Impossible, or None when there is nothing to do.
        in_environment: it changes packages of a virtual or conda environment, so findings about an
            interpreter that is in none do not offer it.
    """

    name: str
    reach: Reach
    function: Callable[..., Plan | Impossible | None]
    in_environment: bool = False


def fix(
    name: str, *, reach: Reach = Reach.ENV, in_environment: bool = False
) -> Callable[[Callable[..., Plan | Impossible | None]], Fix]:
    """Marks a function as a fix; its annotations are its dependencies, as those of a check."""

    def tie(function: Callable[..., Plan | Impossible | None]) -> Fix:
        return Fix(name, reach, function, in_environment)

    return tie
