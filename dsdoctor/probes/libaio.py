"""Looks for libaio with the C compiler if the config offloads to NVMe."""

from __future__ import annotations

from dsdoctor.api import Compilers, Libaio, RunNeeds, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why


def wants_nvme(config: dict[str, object] | None) -> bool:
    """Whether a config offloads to NVMe.

    >>> wants_nvme({"zero_optimization": {"offload_param": {"device": "nvme"}}}), wants_nvme({})
    (True, False)
    """
    zero = (config or {}).get("zero_optimization")
    sections = zero.values() if isinstance(zero, dict) else ()
    return any(isinstance(s, dict) and s.get("device") == "nvme" for s in sections)


@probe
def libaio(host: Host, run: RunNeeds, compilers: Compilers) -> Libaio:
    """Preprocesses an include and looks up the library; nothing is written."""
    if not wants_nvme(run.config):
        raise HostError(Why.NOT_ASKED, "no config that offloads to NVMe was passed")
    cc = compilers.cc.path
    if cc is None:
        raise HostError(Why.ABSENT, "there is no C compiler to test with")
    flags = host.env.get("CFLAGS", "").split()
    source = b"#include <libaio.h>\n"
    done = host.run([cc, *flags, "-E", "-x", "c", "-", "-o", "-"], stdin=source)
    links = [word for word in host.env.get("LDFLAGS", "").split() if word.startswith("-L")]
    where = host.run([cc, *links, "-print-file-name=libaio.so"])
    found = where.text.strip()
    return Libaio(header=done.ok, library=where.ok and "/" in found)
