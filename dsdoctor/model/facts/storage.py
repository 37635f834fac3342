"""Facts about where a run reads and writes: folders, their file systems, quotas, checkpoints."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file that the run will touch.

    Attributes:
        purpose: its use: `--path`, `--writable`, `temporary files`, `built extensions`,
            `Triton cache`, `Hugging Face cache`, `NVMe offload` or `disk of the profile`.
        path: the path, as given.
        variable: the environment variable that sets it; None = a default or an option.
        kind: `file`, `dir`, …; None = nothing exists there.
        empty: it is an empty folder, or a file of 0 bytes.
        parent: nearest existing parent, if the path itself does not exist yet.
        writable: this user may write there (or in the parent, if the path does not exist yet).
        file_system: type of the file system (`ext4`, `nfs4`).
        network: it is a network file system.
        mount: its mount point.
        read_only: it is mounted read-only.
        noexec: it is mounted noexec: programs and libraries cannot be loaded from it.
        locks: files there can be locked; False on Lustre that is mounted without `flock`.
        total_bytes: size of the file system.
        free_bytes: space that this user can still use.
        inodes_total: number of inodes; None if the file system does not count them.
        inodes_free: number of free inodes.
        trial_error: error of the trial write; None = it succeeded or none was made.
        tried: a trial write was made (`--writable`).
        error: why it could not be examined.
        hung: the file system did not answer.
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
    locks: bool = True
    total_bytes: int | None = None
    free_bytes: int | None = None
    inodes_total: int | None = None
    inodes_free: int | None = None
    trial_error: str | None = None
    tried: bool = False
    error: str | None = None
    hung: bool = False


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """Quota of this user on one file system; None = no limit.

    Attributes:
        device: as `quota` prints it.
        used_bytes: space in use.
        soft_bytes: soft limit, which may be exceeded for a grace period.
        hard_bytes: hard limit; nothing can be written above it.
        used_files: number of files.
        soft_files: soft limit on files, which may be exceeded for a grace period.
        hard_files: hard limit on files; none can be created above it.
    """

    device: str
    used_bytes: int
    soft_bytes: int | None = None
    hard_bytes: int | None = None
    used_files: int = 0
    soft_files: int | None = None
    hard_files: int | None = None


class Storage(Fact, frozen=True, kw_only=True):
    """All paths that the run uses.

    Attributes:
        places: paths that it reads or writes.
        quotas: quotas of this user, if the `quota` command reports any.
    """

    places: tuple[Place, ...] = ()
    quotas: tuple[Quota, ...] = ()


class CheckpointFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a checkpoint.

    Attributes:
        name: path below the folder of its tag.
        size: size in bytes.
        problem: `empty`, `truncated`, `git-lfs pointer`, `no checkpoint file`, `damaged` or
            `unreadable`; None = no problem that is visible without loading it.
        detail: details of the problem.
        role: `model`, `optimizer`, `expert`, `layer` or `weights`.
        dp_rank: data-parallel rank in its name; None if there is none.
        mp_rank: model-parallel rank in its name; None if there is none.
    """

    name: str
    size: int = 0
    problem: str | None = None
    detail: str | None = None
    role: str = "model"
    dp_rank: int | None = None
    mp_rank: int | None = None


class Checkpoint(Fact, frozen=True, kw_only=True):
    """The checkpoint folder given with --checkpoint or in the command; nothing was unpickled.

    Attributes:
        path: the path, as given.
        error: why it could not be examined (`it does not exist`).
        latest: tag in the file `latest`; None if there is no such file.
        tag: the tag that was examined; "" = the folder itself contains the shards.
        tags: folders that contain shards.
        tag_exists: the folder of that tag exists.
        files: shards and weight files of that tag.
        dp_world_size: data-parallel world size that wrote it, according to its files.
        mp_world_size: model-parallel world size that wrote it, according to its files.
        zero_stage: ZeRO stage that wrote it, according to its files.
        deepspeed: version of DeepSpeed that wrote it.
        steps: optimizer steps done.
        universal: it is a universal checkpoint, which loads at any world size.
        read_whole: every byte was compared with its checksum (`--deep`).
        resumed: the script's `--resume_from_checkpoint` names it.
        trainer_state: the folder contains the `trainer_state.json` of transformers' Trainer; None =
            unknown.
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
    resumed: bool = False
    trainer_state: bool | None = None

    def of(self, role: str) -> tuple[CheckpointFile, ...]:
        """The files with a role."""
        return tuple(file for file in self.files if file.role == role)
