"""Facts about where a run reads and writes: folders, their file systems, quotas, checkpoints."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file that the run will touch.

    Attributes:
        purpose: what for: `--path`, `--writable`, `temporary files`, `built extensions`,
            `Triton cache`, `Hugging Face cache`, `NVMe offload` or `disk of the profile`.
        path: as it was named.
        variable: the variable that names it, None where it is a default or an option.
        kind: `file`, `dir`, … of what is there; None = nothing is.
        empty: it is a folder without entries, or a file of 0 bytes.
        parent: nearest existing parent, where the path itself is not there yet.
        writable: this user may write there (in the parent, where the path is not there yet).
        file_system: type of the file system (`ext4`, `nfs4`).
        network: that type is of the kind that other machines serve.
        mount: where it is mounted.
        read_only: it is mounted so.
        noexec: it is mounted so that no program or library can be run from it.
        total_bytes: size of the file system.
        free_bytes: what this user may still take.
        inodes_total: how many files it can hold, None where it does not count them.
        inodes_free: how many more.
        trial_error: how a trial write ended, where one was made; None = it worked or none was made.
        tried: a trial write was made (`--writable`).
        error: why it could not be looked at.
        hung: it could not because the file system did not answer.
    """

    purpose: str
    path: str
    variable: str | None = None
    kind: str | None = None
    empty: bool = False
    parent: str | None = None
    writable: bool = True
    file_system: str | None = None
    network: bool = False
    mount: str | None = None
    read_only: bool = False
    noexec: bool = False
    total_bytes: int | None = None
    free_bytes: int | None = None
    inodes_total: int | None = None
    inodes_free: int | None = None
    trial_error: str | None = None
    tried: bool = False
    error: str | None = None
    hung: bool = False


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What the quota system allows this user on one file system; limits of None are none.

    Attributes:
        device: as `quota` names it.
        used_bytes: what is taken.
        soft_bytes: may be passed for some days.
        hard_bytes: nothing can be written above it.
        used_files: how many files there are.
        soft_files: may be passed for some days.
        hard_files: no file can be made above it.
    """

    device: str
    used_bytes: int
    soft_bytes: int | None = None
    hard_bytes: int | None = None
    used_files: int = 0
    soft_files: int | None = None
    hard_files: int | None = None


class Storage(Fact, frozen=True, kw_only=True):
    """All places of the run.

    Attributes:
        places: where it reads and writes.
        quotas: this user's, where the `quota` command tells any.
    """

    places: tuple[Place, ...] = ()
    quotas: tuple[Quota, ...] = ()


class CheckpointFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a checkpoint.

    Attributes:
        name: below the folder of its tag.
        size: bytes.
        problem: `empty`, `truncated`, `git-lfs pointer`, `no checkpoint file`, `damaged` or
            `unreadable`; None = nothing is wrong that can be told without loading it.
        detail: more on the problem.
        role: `model`, `optimizer`, `expert`, `layer` or `weights`.
        dp_rank: data-parallel rank in its name, None where it has none.
        mp_rank: model-parallel rank in its name.
    """

    name: str
    size: int = 0
    problem: str | None = None
    detail: str | None = None
    role: str = "model"
    dp_rank: int | None = None
    mp_rank: int | None = None


class Checkpoint(Fact, frozen=True, kw_only=True):
    """The checkpoint folder given with --checkpoint; nothing in it was unpickled.

    Attributes:
        path: as it was named.
        error: why it could not be looked at (`it does not exist`).
        latest: what the file `latest` names, None where there is no such file.
        tag: the tag that was looked at; "" = the folder itself holds the shards.
        tags: folders with shards in them.
        tag_exists: the folder of that tag is there.
        files: shards and weights of that tag.
        dp_world_size: data-parallel ranks that wrote it, as the files themselves say.
        mp_world_size: model-parallel ranks that wrote it, as the files themselves say.
        zero_stage: as the files themselves say.
        deepspeed: version that wrote it.
        steps: optimizer steps done.
        universal: it is a universal checkpoint, which fits any world size.
        read_whole: every byte was compared with its checksum (`--deep`).
    """

    path: str
    error: str | None = None
    latest: str | None = None
    tag: str | None = None
    tags: tuple[str, ...] = ()
    tag_exists: bool = False
    files: tuple[CheckpointFile, ...] = ()
    dp_world_size: int | None = None
    mp_world_size: int | None = None
    zero_stage: int | None = None
    deepspeed: str | None = None
    steps: int | None = None
    universal: bool = False
    read_whole: bool = False

    def of(self, role: str) -> tuple[CheckpointFile, ...]:
        """Files of a role."""
        return tuple(file for file in self.files if file.role == role)
