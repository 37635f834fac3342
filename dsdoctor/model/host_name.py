"""Names of hosts, judged once where they enter: hostfiles, `--nodes`, Slurm, reports of nodes.

A name becomes a word of ssh, pdsh and srun, the name of a file (`--save`), and a line of a
terminal. What may do harm in one of them is not a host name anywhere.
"""

from __future__ import annotations

import re

#: Letters, digits, `_`, `.` and `-` (RFC 952, 1123; `_` is common on clusters), the `:` and `%` of
#: IPv6 addresses, and an account in front as ssh takes it; never an option, a path or a group.
#: Parts between dots have at most 63 characters (RFC 1035); ClusterShell refuses longer numbers.
_SHAPE = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?"
    r"(?=[A-Za-z0-9_:])[A-Za-z0-9_:%-]{0,63}(?:\.[A-Za-z0-9_:%-]{0,63}){0,126}"
)
_LONGEST = 320
#: A name of Kubernetes (RFC 1123 subdomain): nodes, pods. Dots separate parts that are never empty.
_DNS_NAME = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*"
)


def is_host_name(text: str) -> bool:
    """Whether a text may be used as a host name.

    >>> [is_host_name(name) for name in ("gpu-001.cluster", "10.0.0.1", "fe80::1%eth0", "ann@gpu1")]
    [True, True, True, True]
    >>> [is_host_name(name) for name in ("-oProxyCommand=x", "../../etc", "@all", "a b", ".", "")]
    [False, False, False, False, False, False]
    >>> is_host_name("9" * 63), is_host_name("9" * 64)
    (True, False)
    """
    return len(text) <= _LONGEST and _SHAPE.fullmatch(text) is not None


def is_dns_name(text: str) -> bool:
    """Whether a text may be the name of a Kubernetes object such as a node or a pod (RFC 1123).

    >>> [is_dns_name(name) for name in ("gpu-1.cluster", "train-0")]
    [True, True]
    >>> [is_dns_name(name) for name in ("../pods", "a..b", "-x", "Gpu", "a" * 254, "")]
    [False, False, False, False, False, False]
    """
    return _DNS_NAME.fullmatch(text) is not None
