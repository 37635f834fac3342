"""The machine that `recommend` computes settings for: this one, another one, or a description."""

from __future__ import annotations

import dataclasses

from dsdoctor.errors import UsageError
from dsdoctor.model.units import GIB
from dsdoctor.recommend.machine import Machine, capability, machine_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """The options that describe the machine.

    Attributes:
        gpus: value of --gpus.
        from_file: value of --from.
        like: value of --like.
        gpu_memory: value of --gpu-memory, in GiB.
        gpu_count: value of --gpu-count.
        gpu_cc: value of --gpu-cc.
        host_memory: value of --host-memory, in GiB.
        cpus: value of --cpus.
        timeout: seconds for reading this machine.
    """

    gpus: str | None
    from_file: str | None
    like: str | None
    gpu_memory: float | None
    gpu_count: int | None
    gpu_cc: str | None
    host_memory: float | None
    cpus: int | None
    timeout: float | None

    @property
    def elsewhere(self) -> str | None:
        """The option that selects another machine; None = this machine."""
        return self._given_options[0] if self._given_options else None

    @property
    def _given_options(self) -> list[str]:
        options = {
            "--from": self.from_file,
            "--like": self.like,
            "--gpu-memory": self.gpu_memory,
        }
        return [name for name, value in options.items() if value is not None]

    def refuse_conflicts(self) -> None:
        """Refuses options that contradict each other, before anything takes time.

        Raises:
            UsageError: they do.
        """
        if len(self._given_options) > 1:
            first, second = self._given_options[:2]
            raise UsageError(f"`{first}` and `{second}` are mutually exclusive; pass one of them")
        if self.gpu_memory is None and (self.gpu_count is not None or self.gpu_cc is not None):
            option = "--gpu-count" if self.gpu_count is not None else "--gpu-cc"
            raise UsageError(
                f"`{option}` requires `--gpu-memory`; pass both, "
                "or a product as `--like 8xH100-SXM`"
            )
        if self.gpus is not None and (self.like is not None or self.gpu_memory is not None):
            raise UsageError(
                f"`--gpus` selects from the GPUs of this machine, but `{self.elsewhere}` describes "
                "another one; omit `--gpus` and set the number of its GPUs with "
                + ("`--like`" if self.like is not None else "`--gpu-count`")
            )

    def machine(self) -> Machine:
        """That machine.

        Raises:
            UsageError: a file is not a snapshot, a product is not known, or a requested GPU does
                not exist.
        """
        found = self._read()
        if self.host_memory is not None:
            found = dataclasses.replace(found, host_bytes=int(self.host_memory * GIB))
        return found if self.cpus is None else dataclasses.replace(found, cpus=self.cpus)

    def _read(self) -> Machine:
        if self.gpu_memory is not None:
            return machine_of(
                gpu_gib=self.gpu_memory,
                count=self.gpu_count or 1,
                cc=capability(self.gpu_cc or "8.0"),
            )
        # the engine is not needed for --gpu-memory
        from dsdoctor.cli import common, loading  # noqa: PLC0415  # see above
        from dsdoctor.machines import other_machine, this_machine  # noqa: PLC0415

        if self.like is not None:
            return other_machine.like(self.like)
        chosen = loading.items(self.gpus)
        if self.from_file is not None:
            return other_machine.saved(common.load_snapshot(self.from_file), chosen)
        return this_machine.read(chosen, loading.load_registry(), self.timeout).machine()
