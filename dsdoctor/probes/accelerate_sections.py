"""Values in the sections of accelerate's YAML that stop each rank, or the launcher.

The launcher passes `fsdp_config`, `megatron_lm_config`, `parallelism_config` and `dynamo_config` on
as text; a rank reads them when the script creates its `Accelerator`.

Source: accelerate utils/dataclasses.py (`FullyShardedDataParallelPlugin`, `MegatronLMPlugin`,
`TorchDynamoPlugin`, `DeepSpeedPlugin`), utils/launch.py, parallelism_config.py; 0.27, 0.34, 1.0,
1.6, 1.12 and 1.15 created the plugins from 190 files (2026-11-29). A value counts as wrong if
0.34 and each later release that reads it rejects it; before 0.34, names had to be in upper case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dsdoctor.probes.accelerate_releases import minor, shown, true_since
from dsdoctor.probes.launcher_options import either


class Rejection(NamedTuple):
    """A value that stops a run.

    Attributes:
        said: what it is, and what was expected; the first name in backticks is its key.
        advice: what to write instead.
        in_ranks: the launcher passes it on, and DeepSpeed or a plugin rejects it in each rank.
    """

    said: str
    advice: str
    in_ranks: bool = False


#: `str_to_bool` of accelerate utils/environment.py.
_TRUTH = frozenset({"y", "yes", "t", "true", "on", "1", "n", "no", "f", "false", "off", "0"})
_STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
_POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")
_PREFETCH = ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH")
_STATES = ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT")
#: Also the numbers and the own name that torch gives them.
_STRATEGY_NUMBERS = frozenset("12345") | {"_HYBRID_SHARD_ZERO2"}
_PREFETCH_NUMBERS = frozenset("12")
_STATE_NUMBERS = frozenset("123")
#: What starts the ranks of other nodes: accelerate 0.12 to 1.15 utils/constants.py, and what the
#: launcher of DeepSpeed 0.9 to 0.19 knows.
_STARTERS = ("pdsh", "standard", "openmpi", "mvapich", "mpich", "nossh", "slurm", "impi")
#: Modes of `torch.compile` (torch 2.0 to 2.13 _inductor/__init__.py `list_mode_options`).
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Section:
    """One section, whose values options of the command replace."""

    def __init__(
        self, values: Any, prefix: str, options: Mapping[str, str], rewritten: str = ""
    ) -> None:
        section = values if isinstance(values, dict) else {}
        # accelerate puts `fsdp_` before the keys of `fsdp_config` that do not begin so
        named = {
            key if not rewritten or str(key).startswith(rewritten) else f"{rewritten}{key}": key
            for key in section
        }
        self._written = {str(name): str(key) for name, key in named.items()}
        self._values = {str(name): section[key] for name, key in named.items()}
        self._options = options
        self._prefix = prefix

    def get(self, name: str, otherwise: Any = None) -> Any:
        """A value of the section; None = it is not set, or YAML's null."""
        key = self._prefix + name
        return otherwise if key in self._options else self._values.get(key, otherwise)

    def given(self, name: str) -> bool:
        """Whether the section has a value, be it null."""
        key = self._prefix + name
        return key in self._values and key not in self._options

    def key(self, name: str) -> str:
        """How the file writes a key."""
        return self._written.get(self._prefix + name, self._prefix + name)

    def one_of(
        self,
        name: str,
        expected: tuple[str, ...],
        other: frozenset[str] = frozenset(),
        *,
        null: bool,
    ) -> Iterator[Rejection]:
        """A word, in upper or lower case."""
        value = self.get(name)
        known = {*map(str.upper, expected), *other}
        if self.given(name) and not (value is None and null) and str(value).upper() not in known:
            words = either(expected)
            yield self._rejected(name, words, f"set `{self.key(name)}` to {words}")

    def truths(self, *names: str, null: bool = False) -> Iterator[Rejection]:
        """Values that accelerate reads as true or false."""
        for name in names:
            value = self.get(name)
            text = str(value).lower()
            if self.given(name) and not (value is None and null) and text not in _TRUTH:
                yield self._rejected(
                    name, "true or false", f"set `{self.key(name)}` to true or false"
                )

    def numbers(
        self, *names: str, least: int = 0, whole: bool = True, null: bool = False
    ) -> Iterator[Rejection]:
        """Numbers that accelerate reads from text."""
        expected = "a whole number" if whole else "a number"
        expected += f" of at least {least}" if least else ""
        for name in names:
            value = self.get(name)
            if not self.given(name) or (value is None and null):
                continue
            number = _number(value, whole=whole)
            if number is None or number < least:
                yield self._rejected(name, expected, f"set `{self.key(name)}` to {expected}")

    def _rejected(self, name: str, expected: str, advice: str) -> Rejection:
        value = self.get(name)
        shown = "null" if value is None else str(value).lower() if type(value) is bool else value
        said = f"`{self.key(name)}` is `{str(shown)[:60]}`; expected {expected}"
        return Rejection(said, advice, in_ranks=True)


def _number(value: Any, *, whole: bool) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return int(str(value)) if whole else float(str(value))
    except ValueError:
        return None


def rejected_sections(
    values: Mapping[str, Any], options: Mapping[str, str], release: str | None = None
) -> Iterator[Rejection]:
    """Values that the plugin of the kind of run rejects.

    >>> yaml = {"distributed_type": "FSDP", "fsdp_config": {"fsdp_sharding_strategy": "ZERO3"}}
    >>> next(rejected_sections(yaml, {})).said.partition(";")[0]
    '`fsdp_sharding_strategy` is `ZERO3`'
    """
    kind = str(values.get("distributed_type", "")).upper()
    if "cpu" in options or values.get("use_cpu") is True:
        return
    if kind == "FSDP":
        yield from _of_fsdp(values, options)
    elif kind == "MEGATRON_LM":
        yield from _of_megatron(values, options)
    elif kind == "DEEPSPEED":
        yield from _of_deepspeed(values, options, release)
    # no release passes these on to DeepSpeed's ranks; an earlier key replaces the section
    if kind != "DEEPSPEED" and "dynamo_backend" not in values:
        compiled = Section(values.get("dynamo_config"), "dynamo_", options, "dynamo_")
        yield from compiled.truths("use_fullgraph", "use_dynamic", "use_regional_compilation")
        if str(compiled.get("backend", "")).upper() == "INDUCTOR":
            yield from compiled.one_of("mode", _MODES, null=True)
    if kind not in ("NO", "MULTI_CPU"):
        yield from _of_parallelism(values, options)


def _of_fsdp(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    section = Section(values.get("fsdp_config"), "fsdp_", options, "fsdp_")
    yield from section.one_of("version", ("1", "2"), null=False)
    second = str(options.get("fsdp_version", section.get("version", 1))) == "2"
    if second:
        yield from section.truths("reshard_after_forward")
        whole = (_STATES[0], _STATES[2])
        yield from section.one_of("state_dict_type", whole, _STATE_NUMBERS - {"2"}, null=True)
    else:
        yield from section.one_of("sharding_strategy", _STRATEGIES, _STRATEGY_NUMBERS, null=False)
        yield from section.one_of("state_dict_type", _STATES, _STATE_NUMBERS, null=True)
        yield from section.truths("forward_prefetch", "use_orig_params", "sync_module_states")
    yield from section.one_of("auto_wrap_policy", _POLICIES, null=True)
    yield from section.one_of("backward_prefetch", _PREFETCH, _PREFETCH_NUMBERS, null=True)
    yield from section.truths(
        "offload_params", "activation_checkpointing", "activation_checkpointing_offload",
        "cpu_ram_efficient_loading",
    )  # fmt: skip
    if str(section.get("auto_wrap_policy")).upper() == "SIZE_BASED_WRAP":
        yield from section.numbers("min_num_params")
    offload = "activation_checkpointing_offload"
    if _true(section.get(offload)):
        needed = "" if second else "`fsdp_version: 2`"
        if not _true(section.get("activation_checkpointing")):
            needed = f"`{section.key('activation_checkpointing')}`"
        if needed:
            said = f"`{section.key(offload)}` is true, but it needs {needed}"
            yield Rejection(said, f"set {needed} too, or remove it", in_ranks=True)


def _of_megatron(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    section = Section(values.get("megatron_lm_config"), "megatron_lm_", options)
    yield from section.numbers("tp_degree", "pp_degree")
    yield from section.numbers("gradient_clipping", whole=False)
    yield from section.numbers(
        "num_micro_batches", "recompute_num_layers", "expert_model_parallel_size",
        "context_parallel_size", "expert_tensor_parallel_size", null=True,
    )  # fmt: skip
    yield from section.truths(
        "sequence_parallelism", "recompute_activations", "use_distributed_optimizer", null=True
    )


#: The first releases that take "auto" for these; before, each rank read a number.
_AUTO_SINCE = {"gradient_accumulation_steps": (0, 23), "gradient_clipping": (0, 30)}


def _of_deepspeed(
    values: Mapping[str, Any], options: Mapping[str, str], release: str | None
) -> Iterator[Rejection]:
    section = Section(values.get("deepspeed_config"), "", options)
    machines = str(options.get("num_machines") or values.get("num_machines") or 1)
    if machines.isdecimal() and int(machines) > 1:
        yield from section.one_of("deepspeed_multinode_launcher", _STARTERS, null=True)
    if section.get("deepspeed_config_file") or "deepspeed_config_file" in options:
        return
    for name, first in _AUTO_SINCE.items():
        if section.get(name) == "auto" and (minor(release) or first) < first:
            said = f'`{name}` is "auto", which only accelerate {shown(first)} and newer accept'
            yield Rejection(said, f"set `{name}` to a number", in_ranks=True)
    if section.get("gradient_clipping") != "auto":
        yield from section.numbers("gradient_clipping", whole=False, null=True)
    yield from section.truths("zero3_init_flag", null=True)


def _of_parallelism(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    """Degrees of parallelism, which accelerate 1.10 and later read (parallelism_config.py)."""
    section = Section(values.get("parallelism_config"), "parallelism_config_", options)
    sizes = ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size")
    yield from section.numbers(*sizes, least=1)
    yield from section.one_of("cp_backend", ("torch",), null=False)
    yield from section.one_of("sp_backend", ("deepspeed",), null=False)
    replicate, shard, tensor, context, sequence = (
        _number(section.get(size, 1), whole=True) or 1 for size in sizes
    )
    if context > 1:
        yield from section.one_of("cp_comm_strategy", ("allgather", "alltoall"), null=False)
    key = section.key
    if context > 1 and sequence > 1:
        said = (
            f"`{key('cp_size')}` is {context:g} and `{key('sp_size')}` is {sequence:g}, which are"
        )
        yield Rejection(
            f"{said} mutually exclusive", "set one of them to 1", in_ranks=True
        )  # fmt: skip
    if replicate > 1 and shard == 1 and max(tensor, context) > 1:
        named = key("tp_size") if tensor > 1 else key("cp_size")
        said = (
            f"`{named}` is {max(tensor, context):g}, which needs `{key('dp_shard_size')}` above 1"
        )
        said += f" next to `{key('dp_replicate_size')}` {replicate:g}"
        yield Rejection(
            said, f"set `{key('dp_replicate_size')}` to 1, or shard the model", in_ranks=True
        )  # fmt: skip


def _true(value: Any) -> bool:
    return str(value).lower() in {"y", "yes", "t", "true", "on", "1"}


def rejected_nodes(
    values: Mapping[str, Any], options: Mapping[str, str], release: str | None = None
) -> Iterator[Rejection]:
    """Addresses that the launcher cannot use, and of several machines without torchrun, needs.

    >>> yaml = {"distributed_type": "MULTI_CPU", "num_machines": 2, "main_process_port": 29500}
    >>> next(rejected_nodes(yaml, {}, "1.15.0")).said
    '`num_machines` is 2, but `main_process_ip` is missing'
    """
    machines = options.get("num_machines", values.get("num_machines", 1))
    if machines is None:
        yield Rejection("`num_machines` is null; expected a number", "set `num_machines` to 1")
        return
    simple = str(values.get("distributed_type")) in ("NO", "MULTI_CPU")
    several = re.fullmatch(r"[1-9]\d{0,5}", str(machines)) and int(str(machines)) > 1
    if simple and "cpu" not in options:
        for other in Section(values, "", options).truths("use_cpu"):
            yield other._replace(in_ranks=False)
    chosen = {"multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "tpu"} & options.keys()
    port = values.get("main_process_port")
    first = not several or str(options.get("machine_rank", values.get("machine_rank", 0))) == "0"
    if "main_process_port" not in options and not simple and first and isinstance(port, str | list):
        said = f"`main_process_port` is `{port}`; expected a number without quotes"
        yield Rejection(said, "set `main_process_port` to a number, without quotes")
    known = true_since((1, 8), release)  # 31 releases, utils/launch.py
    if not simple or not several or chosen or known is None:
        return
    said = f"`num_machines` is {machines}, but "
    for key, advice in (
        ("main_process_ip", "the address of the first machine"),
        ("main_process_port", "a free port of the first machine"),
    ):
        if not options.get(key) and values.get(key) is None:
            yield Rejection(f"{said}`{key}` is missing{known}", f"set `{key}` to {advice}")
