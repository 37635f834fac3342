"""Reads where a run will read and write: folders, mounts, quotas, and a checkpoint's files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dsdoctor.api import (
    Checkpoint,
    CheckpointFile,
    LaunchFiles,
    Missing,
    Place,
    Quota,
    RunNeeds,
    Storage,
    probe,
)
from dsdoctor.host import NETWORK_FILE_SYSTEMS, Host, HostError, home_folder, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.process import Result
from dsdoctor.records import decode

#: Reading the names and archive directories of a thousand shards on a network disk.
CHECKPOINT_SECONDS = 60.0
#: The same with `--quick`, of one that the command resumes from; with every byte read (`--deep`).
QUICK_SECONDS, WHOLE_SECONDS = 5.0, 150.0
#: A trial write of 1 MiB with fsync.
WRITE_SECONDS = 15.0
#: `quota` queries the NFS servers one after another.
QUOTA_SECONDS = 5.0

_CHILDREN = Path(__file__).parent / "children"
_RANKS = re.compile(r"(?:zero_pp_rank_(\d+)_)?mp_rank_(\d+)")


# ---- places ------------------------------------------------------------------------------------


class Mount(NamedTuple):
    """A mounted file system.

    Attributes:
        point: where it is mounted.
        kind: type of the file system.
        noexec: the option is set.
        locks: files can be locked: Lustre says `noflock` if not.
    """

    point: str
    kind: str
    noexec: bool = False
    locks: bool = True


def parse_mounts(mountinfo: str) -> list[Mount]:
    r"""The mounts of /proc/self/mountinfo.

    >>> parse_mounts("36 35 98:0 / /my\\040data rw,noexec - ext4 /dev/sda rw\nrubbish")
    [Mount(point='/my data', kind='ext4', noexec=True, locks=True)]
    """
    found = []
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 6 or not after:  # noqa: PLR2004  # fields of the format
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        kind, *source = after.split(" ")
        options = {*fields[5].split(","), *(source[-1].split(",") if source else ())}
        found.append(Mount(point, kind, "noexec" in options, "noflock" not in options))
    return found


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount of a real path: the longest match, and the last of equal ones.

    >>> mount_of("/home/me/x", [Mount("/", "ext4"), Mount("/home", "nfs4")]).kind
    'nfs4'
    >>> mount_of("/homely", [Mount("/", "ext4"), Mount("/home", "nfs4")]).point
    '/'
    """
    found = None
    for mount in mounts:
        point = mount[0]
        root = point.rstrip("/")
        inside = path == point or path.startswith(root + "/")
        if inside and (found is None or len(point) >= len(found[0])):
            found = mount
    return found


def _nvme_paths(config: Mapping[str, object] | None) -> Iterator[str]:
    zero = (config or {}).get("zero_optimization")
    for part in ("offload_optimizer", "offload_param"):
        section = zero.get(part) if isinstance(zero, dict) else None
        if isinstance(section, dict) and section.get("device") == "nvme":
            path = section.get("nvme_path")
            if isinstance(path, str):
                yield path


_TEMPORARY, _DEFAULT_TMP = "temporary files", "/tmp"  # noqa: S108  # measured only


def named_places(host: Host, run: RunNeeds) -> list[tuple[str, str, str | None]]:
    """Purpose, path and variable of every place that the run will use.

    Defaults: torch 2.13 `_get_default_build_root`, triton 3.x `knobs.py`, huggingface_hub 0.30
    `constants.py`, DeepSpeed 0.19.8 for the Triton cache of its own autotuner.
    """
    env = host.env
    home = home_folder(host)
    cache = env.get("XDG_CACHE_HOME") or f"{home}/.cache"
    triton_home = env.get("TRITON_HOME") or home

    def first(default: str, *variables: str) -> tuple[str, str | None]:
        for variable in variables:
            if env.get(variable):
                return env[variable], variable
        return default, None

    found: list[tuple[str, str, str | None]] = []
    found += [("--path", path, None) for path in run.paths]
    found += [("--writable", path, None) for path in run.writable]
    found += [("--output_dir", run.output_dir, None)] if run.output_dir else []
    found += [("NVMe offload", path, None) for path in dict.fromkeys(_nvme_paths(run.config))]
    if run.floors is not None and run.floors.disk_gib is not None:
        found.append(("disk of the profile", run.floors.disk_path or ".", None))
    found.append((_TEMPORARY, *first(_DEFAULT_TMP, "TMPDIR")))
    found.append(("built extensions", *first(f"{cache}/torch_extensions", "TORCH_EXTENSIONS_DIR")))
    found.append(("Triton cache", *first(f"{triton_home}/.triton/cache", "TRITON_CACHE_DIR")))
    found.append(("Hugging Face cache", *first(f"{cache}/huggingface", "HF_HOME")))
    return found


def _parent(host: Host, path: str) -> str:
    """The nearest existing parent."""
    place = path
    while place not in ("", "/"):
        place = posixpath.dirname(place)
        try:
            host.stat(place)
        except HostError as error:
            if error.missing.why is not Why.ABSENT:
                raise
        else:
            break
    return place or "/"


def look(
    host: Host,
    named: tuple[str, str, str | None],
    cwd: str,
    mounts: Sequence[Mount],
) -> Place:
    """One place; `error` reports what could not be read."""
    purpose, path, variable = named
    place = Place(purpose=purpose, path=path, variable=variable)
    full = posixpath.normpath(posixpath.join(cwd, path))
    fields: dict[str, Any] = {}
    try:
        try:
            found, there = host.stat(full), full
            fields["kind"] = found.kind
            if found.kind == "dir" and purpose == "--path":
                fields["empty"] = not host.listdir(full)
            elif found.kind == "file":
                fields["empty"] = found.size == 0
        except HostError as error:
            if error.missing.why is not Why.ABSENT:
                raise
            there = _parent(host, full)
            found = host.stat(there)
            fields["parent"] = there
        fields["writable"] = found.writable
        mount = mount_of(host.readlink(there), mounts)
        if mount is not None:
            fields |= {
                "mount": mount.point,
                "file_system": mount.kind,
                "noexec": mount.noexec,
                "locks": mount.locks,
                "network": mount.kind in NETWORK_FILE_SYSTEMS,
            }
        usage = host.disk(there)
        fields |= {
            "total_bytes": usage.total,
            "free_bytes": usage.free,
            "inodes_total": usage.inodes_total,
            "inodes_free": usage.inodes_free,
            "read_only": usage.read_only,
        }
    except HostError as error:
        fields["error"] = error.missing.detail
        fields["hung"] = error.missing.why is Why.TIMEOUT
    return msgspec.structs.replace(place, **fields)


def _with_trial_writes(host: Host, places: list[Place], cwd: str) -> list[Place]:
    """The places of --writable with the outcome of a trial write in each."""
    done = []
    for place in places:
        if place.purpose != "--writable" or place.error or place.kind not in (None, "dir"):
            done.append(place)
            continue
        folder = posixpath.normpath(posixpath.join(cwd, place.path))
        argv = [str(host.query("executable")), str(_CHILDREN / "trial_write.py"), folder]
        try:
            result = host.run(argv, timeout=WRITE_SECONDS)
        except HostError as error:
            done.append(msgspec.structs.replace(place, error=error.missing.detail))
            continue
        done.append(msgspec.structs.replace(place, tried=True, **_trial(result)))
    return done


def _trial(result: Result) -> dict[str, Any]:
    if result.timed_out:
        return {"hung": True, "error": f"a trial write did not end within {WRITE_SECONDS:g} s"}
    for record in decode(result.stdout):
        if "folder" in record:
            error = record.get("error")
            return {"trial_error": None if error is None else str(error)}
    return {"error": f"the trial write ended without an answer ({result.error_text or 'silent'})"}


# ---- quotas ------------------------------------------------------------------------------------


def parse_quota(text: str) -> list[Quota]:
    r"""Parses `quota -w -p --show-mntpoint --hide-device` or `quota -w -p`, in KiB.

    >>> parse_quota("Disk quotas for user me (uid 1):\n"
    ...     " Filesystem blocks quota limit grace files quota limit grace\n"
    ...     "/dev/sda1 900 1000 1200 0 5 0 0 0\n")[0].hard_bytes
    1228800
    """
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"\s*(\S+)\s+(\d+)\*?((?:\s+\d+\*?){7})\s*", line)
        if match is None:
            continue
        numbers = [int(word.rstrip("*")) for word in [match[2], *match[3].split()]]
        blocks, soft, hard, _, files, soft_files, hard_files, _ = numbers
        found.append(
            Quota(
                device=match[1],
                used_bytes=blocks << 10,
                soft_bytes=(soft << 10) or None,
                hard_bytes=(hard << 10) or None,
                used_files=files,
                soft_files=soft_files or None,
                hard_files=hard_files or None,
            )
        )
    return found


def _quotas(host: Host) -> list[Quota]:
    program = host.which("quota")
    if program is None or host.system != "Linux":
        return []
    try:
        result = host.run([program, "-w", "-p"], timeout=QUOTA_SECONDS)
    except HostError:
        return []
    return parse_quota(result.text)  # it exits with 1 when a quota is exceeded


@probe
def storage(host: Host, run: RunNeeds) -> Storage:
    """Every place of the run with its file system, and the user's quotas."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "file systems are not examined on Windows")
    try:
        mounts = parse_mounts(read_text(host, "/proc/self/mountinfo"))
    except HostError:
        mounts = []
    cwd = run.cwd if run.cwd not in ("", ".") else str(host.query("cwd"))
    places = [look(host, named, cwd, mounts) for named in named_places(host, run)]
    named = next((place for place in places if place.variable == "TMPDIR"), None)
    if named is not None and named.kind is None and not named.error:
        # Python and gcc then take the default (Lib/tempfile.py; libiberty/make-temp-file.c)
        places.append(look(host, (_TEMPORARY, _DEFAULT_TMP, None), cwd, mounts))
    return Storage(places=tuple(_with_trial_writes(host, places, cwd)), quotas=tuple(_quotas(host)))


# ---- checkpoints -------------------------------------------------------------------------------


def parse_name(name: str) -> tuple[str, int | None, int | None]:
    """Role, data-parallel and model-parallel rank of a shard, by its name.

    >>> parse_name("bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt")
    ('optimizer', 1, 0)
    >>> parse_name("mp_rank_03_model_states.pt"), parse_name("layer_01-model_00-model_states.pt")
    (('model', None, 3), ('layer', None, None))
    >>> parse_name("layer_0_expert_2_mp_rank_00_model_states.pt")[0]
    'expert'
    >>> parse_name("model-00001-of-00002.safetensors")
    ('weights', None, None)
    """
    if name.endswith((".safetensors", ".bin")):
        return "weights", None, None
    if "expert_" in name or name.startswith("expp_rank_"):
        return "expert", None, None
    if name.startswith("layer_"):
        return "layer", None, None
    role = "optimizer" if name.endswith("_optim_states.pt") else "model"
    ranks = _RANKS.search(name)
    if ranks is None:
        return role, None, None
    return role, None if ranks[1] is None else int(ranks[1]), int(ranks[2])


def parse_checkpoint(path: str, records: Sequence[Mapping[str, Any]], whole: bool) -> Checkpoint:
    """The fact from the records of `children/checkpoint.py`."""
    head = next((record for record in records if "folder" in record), None)
    if head is None:
        return Checkpoint(path=path, error="it could not be examined")
    if error := head.get("error"):
        return Checkpoint(path=path, error=str(error))
    files: list[CheckpointFile] = []
    numbers: dict[str, Any] = {}
    for record in records:
        if "file" not in record:
            continue
        role, dp_rank, mp_rank = parse_name(str(record["file"]))
        files.append(
            CheckpointFile(
                name=str(record["file"]),
                size=int(record.get("size", 0)),
                problem=record.get("problem"),
                detail=record.get("detail"),
                role=role,
                dp_rank=dp_rank,
                mp_rank=mp_rank,
            )
        )
        found = record.get("numbers") or {}
        numbers |= {key: value for key, value in found.items() if key not in numbers}
    return Checkpoint(
        path=path,
        latest=head.get("latest"),
        tag=head.get("tag"),
        tags=tuple(head.get("tags") or ()),
        tag_exists=bool(head.get("tag_exists")),
        files=tuple(files),
        dp_world_size=numbers.get("dp_world_size", numbers.get("partition_count")),
        mp_world_size=numbers.get("mp_world_size"),
        zero_stage=numbers.get("zero_stage", numbers.get("config_stage")),
        deepspeed=numbers.get("ds_version"),
        steps=numbers.get("global_steps"),
        universal=bool(head.get("universal")),
        trainer_state=head.get("trainer_state"),
        read_whole=whole,
    )


@probe
def checkpoint(host: Host, run: RunNeeds, launch: LaunchFiles | Missing) -> Checkpoint:
    """The checkpoint of --checkpoint or of the command, or its model's weights, read by a child."""
    files = launch if isinstance(launch, LaunchFiles) else LaunchFiles()
    if run.quick:
        files = LaunchFiles(resumed=files.resumed)
    resumed = run.checkpoint is None and files.resumed is not None
    given = (named := run.checkpoint or files.resumed or files.loaded) or files.model_folder
    if given is None:
        raise HostError(Why.NOT_ASKED, "no checkpoint was passed (`--checkpoint DIR`)")
    folder = str(host.query("cwd")) if run.cwd in ("", ".") else run.cwd
    folder = posixpath.normpath(posixpath.join(folder, given))
    argv = [str(host.query("executable")), str(_CHILDREN / "checkpoint.py"), folder]
    brief = run.quick and resumed
    limit = WHOLE_SECONDS if run.deep else QUICK_SECONDS if brief else CHECKPOINT_SECONDS
    loading = (run.config or {}).get("checkpoint")
    universal = isinstance(loading, dict) and loading.get("load_universal") is True
    argv += ["--whole"] * run.deep + ["--universal"] * universal
    result = host.run(argv, timeout=limit)
    records = decode(result.stdout)
    read = sum("file" in record for record in records)
    if result.timed_out:
        late = f"the checkpoint `{given}` was not read within {limit:g} s ({read} files were)"
        raise HostError(Why.NOT_ASKED if brief else Why.TIMEOUT, late + " (`--quick`)" * brief)
    fact = msgspec.structs.replace(parse_checkpoint(given, records, run.deep), resumed=resumed)
    if named and not (run.checkpoint or resumed) and fact.latest is None:  # then none is loaded
        raise HostError(Why.NOT_ASKED, f"`{given}` contains no checkpoint yet")
    if not named and {file.role for file in fact.files} != {"weights"}:
        raise HostError(Why.NOT_ASKED, f"`{given}` contains no weights that dsdoctor knows")
    if fact.error is None and fact.tag_exists and not any(one.get("done") for one in records):
        told = f"the checkpoint `{given}` could not be read: {result.error_text}"
        raise HostError(Why.BROKEN, told)
    return fact
