"""Values that stand for others: what a reporter left out, or a reader is to fill in."""

from __future__ import annotations

import re

#: In any part of a value: `<ip>`, `${HOST}`, `{port}`, `your_port`, `10.x.x.x`, `/path/to/model`,
#: and the words that templates and reporters write where a value is left out.
_PART = re.compile(
    r"<[^<>]{0,80}>?|[$`]|\{\{?[A-Za-z_][\w .]{0,40}\}|\[[A-Za-z_][\w ]{2,40}\]|\*{2,}|\.\.\.|…"
    r"|(?<![A-Za-z])(?:x{2,}|X{2,})(?![A-Za-z])|(?<![A-Za-z0-9])[xX](?:[.:][xX\d]{1,3}){2,}"
    r"|\d\.[xX](?![A-Za-z0-9])|(?<![A-Za-z])(?:(?:your|YOUR|Your)[_-]?\w|(?:my|MY)[_-]\w)"
    r"|path[/_-]?to(?![a-z])|PATH[/_-]?TO|(?<![A-Za-z])(?:redacted|REDACTED|masked|omitted|hidden|TODO|FIXME)"
)


def is_placeholder(value: str) -> bool:
    """Whether a value is not what the job used, as far as one can see.

    >>> [is_placeholder(word) for word in ("<ip>", "10.0.x.x", "$PORT", "xxx", "path/to/ds.json")]
    [True, True, True, True, True]
    >>> [is_placeholder(word) for word in ("29500", "mlx5_0", "gx1", "/data/exxon", "=eth0", "")]
    [False, False, False, False, False, False]
    """
    return _PART.search(value) is not None
