"""The model hub cannot be reached and the files are not cached.

## Why it matters
Compute nodes often have no internet access. A model that is not in the cache cannot be downloaded
when the job starts.

## What to do
Download the files in advance on a node with internet access (`hf download MODEL`), or set
`HTTPS_PROXY` or `HF_ENDPOINT`, whose address begins with `https://`.

## References
- huggingface_hub 0.14-2.4 constants.py; transformers 4.6-5.23 utils/hub.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    LaunchCommand,
    LaunchFiles,
    Missing,
    Scope,
    ScriptPaths,
    TracebackRule,
    UncachedName,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import HUB_TRUE, variable

from . import _hub_unreachable_signatures

CONDITION = Condition(
    "hub-unreachable",
    id="DSD1552",
    scope=Scope.JOB,
    since="0.1",
    transient="a server that did not answer may answer next time",
)

#: Where the hub is (huggingface_hub 0.5-2.4 constants.py).
_ADDRESS = "HF_ENDPOINT"
#: For data sets (datasets 2.14-5.2 config.py).
_OF_DATA = "HF_DATASETS_OFFLINE"
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@check(CONDITION)
def the_model_is_at_hand(
    files: LaunchFiles,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    script: ScriptPaths | Missing,
) -> Iterator[Finding]:
    """Fails for what the command or the script names, may not download, and is not cached."""
    own = command.env if isinstance(command, LaunchCommand) else {}
    names = (*_OFFLINE, _OF_DATA, _ADDRESS)
    values = {name: own.get(name) or variable(env, name) or "" for name in names}
    off = [name for name in _OFFLINE if values[name].upper() in HUB_TRUE]
    if not off and _lacks_scheme(values[_ADDRESS]):
        yield (warn if files.model_cached is None else fail)(
            f"`{_ADDRESS}={values[_ADDRESS]}` does not begin with `https://`",
            effect="what is read from the hub stops with `Request URL is missing an 'http://' or"
            " 'https://' protocol`, or with `No scheme supplied`",
            hint=f"set it to `https://{values[_ADDRESS]}`, or unset it",
            variable=_ADDRESS,
            value=values[_ADDRESS],
        )
        return
    of_script = () if isinstance(script, Missing) else script.uncached
    of_data = off
    if values[_OF_DATA]:  # it takes precedence, whatever it says
        of_data = [_OF_DATA] if values[_OF_DATA].upper() in HUB_TRUE else []
    for one in of_script:
        if by := of_data if one.is_data else off:
            yield _named_by_script(one, by[0], values[by[0]])
            return
    if files.model_cached is None:
        yield skip("the command names no model of the hub, or the cache could not be read")
        return
    if not off or files.model_cached:
        yield ok(model=files.model, cached=files.model_cached, offline=off)
        return
    yield fail(
        f"`{off[0]}={values[off[0]]}` is set, but the model `{files.model}` is not in the hub's cache",
        effect="loading the model stops with `couldn't find it in the cached files`",
        hint=f"run `hf download {files.model}` where the hub can be reached, with the same `HF_HOME`, or"
        f" unset `{off[0]}`",
        model=files.model,
        variable=off[0],
    )


def _named_by_script(one: UncachedName, variable: str, value: str) -> Finding:
    return fail(
        f"`{variable}={value}` is set, but the data set `{one.name}`, which line {one.line} of the"
        " script loads, is in no cache"
        if one.is_data
        else f"`{variable}={value}` is set, but the model `{one.name}`, which line {one.line} of the"
        " script loads, is in no cache",
        effect="every rank stops there: the hub is not asked",
        hint=f"run `hf download --repo-type dataset {one.name}` where the hub can be reached, with the"
        f" same `HF_HOME`, or unset `{variable}`"
        if one.is_data
        else f"run `hf download {one.name}` where the hub can be reached, with the same `HF_HOME`, or"
        f" unset `{variable}`",
        name=one.name,
        line=one.line,
        variable=variable,
    )


def _lacks_scheme(address: str) -> bool:
    """Whether an address is the name of a server only.

    >>> [_lacks_scheme(one) for one in ("hf-mirror.com", "https://hf-mirror.com", "", "$MIRROR")]
    [True, False, False, False]
    """
    return re.fullmatch(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?/?", address) is not None


HINT = (
    "download the files in advance with `hf download MODEL`, or set `HTTPS_PROXY` or `HF_ENDPOINT`"
)

SIGNATURES = _hub_unreachable_signatures.SIGNATURES

#: What ends a download halfway names no address.
BROKEN = (
    "ChunkedEncodingError", "ConnectError", "ConnectTimeout", "ConnectionError", "IncompleteRead",
    "IncompleteReadError", "ProtocolError", "ReadError", "ReadTimeout", "ReadTimeoutError", "RemoteProtocolError",
)  # fmt: skip

TRACEBACK_RULES = (
    TracebackRule(
        file="huggingface_hub/file_download.py",
        function="http_get",
        kinds=BROKEN,
        source="huggingface-hub 0.1-1.2 file_download.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/huggingface_hub/file_download.py", line 540, in http_get\n    for chunk in r.iter_content(chunk_size=10485760):\n  File "/env/lib/python3.11/site-packages/urllib3/response.py", line 763, in _error_catcher\n    raise ProtocolError(f"Connection broken: {e!r}", e) from e\nurllib3.exceptions.ProtocolError: ("Connection broken: x", x)',
    ),
)
