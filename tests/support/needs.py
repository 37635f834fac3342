"""What tests need of a machine that not every machine has, as marks of a module."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

import pytest

#: Where a distribution puts the programs of daemons, which a user's PATH may leave out.
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def not_installed(programs: Sequence[str]) -> list[str]:
    return [name for name in programs if shutil.which(name, path=PATH) is None]


def linux_root_with(what: str, programs: Sequence[str]) -> list[pytest.MarkDecorator]:
    """Marks of tests that start daemons as root on Linux.

    Args:
        what: the daemons, for the reason of a skip.
        programs: that have to be installed.
    """
    missing = (
        not sys.platform.startswith("linux") or os.geteuid() != 0 or bool(not_installed(programs))
    )
    reason = f"needs Linux, root and {what} (tests/system-deps.sh)"
    return [pytest.mark.skipif(missing, reason=reason), pytest.mark.system]
