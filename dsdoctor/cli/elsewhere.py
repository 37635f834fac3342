"""Options of `check` that select another machine: a snapshot, a paste, a node, a description."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dsdoctor.cli import common
from dsdoctor.errors import UsageError
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.packs.registry import Registry

if TYPE_CHECKING:
    from dsdoctor.cli.pasted import Paste


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """The options that were passed.

    Attributes:
        from_file: value of --from.
        from_report: value of --from-report.
        node: value of --node.
        like: value of --like.
        driver: value of --driver.
    """

    from_file: str | None
    from_report: str | None
    node: str | None
    like: str | None
    driver: str | None

    def agree(self, *, python: str | None, quick: bool, deep: bool) -> None:
        """Rejects options that select two machines, or that try things on another machine.

        Raises:
            UsageError: options conflict.
        """
        options = {
            "--from": self.from_file,
            "--from-report": self.from_report,
            "--node": self.node,
            "--like": self.like,
        }
        named = [name for name, value in options.items() if value is not None]
        if len(named) > 1:
            raise UsageError(
                f"`{named[0]}` and `{named[1]}` are mutually exclusive; pass one of them"
            )
        if self.driver is not None and self.like is None:
            raise UsageError("`--driver` requires `--like`; pass both")
        tried = [("--python", python), ("--quick", quick), ("--deep", deep)]
        if self.elsewhere:
            for option, value in tried:
                if value:
                    raise UsageError(
                        f"`{named[0]}` uses facts that were read elsewhere; omit `{option}`"
                    )
        elif named and deep:
            raise UsageError(f"`{named[0]}` cannot run anything on that machine; omit `--deep`")

    @property
    def elsewhere(self) -> bool:
        """Whether nothing of this machine is judged."""
        return self.from_file is not None or self.from_report is not None

    @property
    def names_machine(self) -> bool:
        """Whether another machine than this one is judged."""
        return self.elsewhere or self.node is not None or self.like is not None

    def paste(self, registry: Registry) -> Paste | None:
        """The text of `--from-report`, which may come from standard input and is read once.

        Raises:
            UsageError: it cannot be read.
        """
        if self.from_report is None:
            return None
        from dsdoctor.cli import pasted  # noqa: PLC0415  # readers only where they are needed

        return pasted.read(self.from_report, registry)

    def snapshot(self, needs: RunNeeds | None, registry: Registry, paste: Paste | None) -> Snapshot:
        """The snapshot of a machine that was examined elsewhere, with the job of the options.

        Raises:
            UsageError: a file cannot be read or is not one.
        """
        snapshot = _saved(str(self.from_file), registry) if paste is None else paste.stated()
        if needs is None:
            return snapshot
        from dsdoctor import compose  # noqa: PLC0415  # only with a job
        from dsdoctor.host import LocalHost  # noqa: PLC0415

        quick = snapshot.run.quick
        run = msgspec.structs.replace(needs, quick=quick)
        made = compose.with_job(snapshot, run, LocalHost(), registry)
        if not made.origin:
            made.origin = f"this job on the machine of `{self.from_file}`"
        return made

    def composed(self, here: Snapshot, needs: RunNeeds, registry: Registry) -> Snapshot:
        """The facts of this machine, combined with the one that `--node` or `--like` selects.

        Raises:
            UsageError: the file is not a snapshot, or the description contains no known product.
        """
        if self.node is None and self.like is None:
            return here
        from dsdoctor import compose  # noqa: PLC0415  # only where they are needed
        from dsdoctor.host import LocalHost  # noqa: PLC0415

        if self.node is not None:
            node, name = common.load_snapshot(self.node), f"the machine of `{self.node}`"
        else:
            node = compose.machine_like(str(self.like), self.driver)
            name = f"a machine like {self.like}"
        made = compose.composed(here, node, name)
        return compose.with_job(made, needs, LocalHost(), registry)


def _saved(path: str, registry: Registry) -> Snapshot:
    """The snapshot in a file.

    Raises:
        UsageError: it is not one; for a paste, the error says which option reads it.
    """
    try:
        return common.load_snapshot(path)
    except UsageError as error:
        from dsdoctor.cli import pasted  # noqa: PLC0415  # only for a wrong file

        if not Path(path).is_file():  # a pipe can be read once
            raise
        try:
            environment = pasted.read(path, registry).environment
        except UsageError:
            raise error from None
        if environment is None:
            raise
        raise UsageError(
            f"`{path}` is the output of a tool, not a snapshot; pass `--from-report {path}`"
        ) from None
