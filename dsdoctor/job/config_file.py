"""A DeepSpeed config that a program has as a dictionary, as the file that checks read."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dsdoctor import files
from dsdoctor.errors import UsageError


@contextlib.contextmanager
def of(config: str | Path | Mapping[str, Any] | None) -> Iterator[str | None]:
    """The path of a DeepSpeed config, for as long as it is examined.

    DeepSpeed and the Trainer take a dictionary as well; checks, and the DeepSpeed of the
    environment, read a file.

    Raises:
        UsageError: a value of the dictionary cannot be written as JSON.
    """
    if not isinstance(config, Mapping):
        yield None if config is None else str(config)
        return
    try:
        text = json.dumps(dict(config), indent=2)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`config` cannot be written as JSON: {error}") from None
    folder = files.scratch_folder("dsdoctor-config-")
    try:
        path = folder / "ds_config.json"
        files.write(path, text.encode())
        yield str(path)
    finally:
        files.remove(folder, tree=True)
