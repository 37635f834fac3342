"""Nodes of the cluster, which are known only from pasted text."""

from __future__ import annotations

from dsdoctor.api import ClusterNodes, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why


@probe
def cluster_nodes(host: Host) -> ClusterNodes:
    """Not read here: a check on each of 1,000 nodes would ask the scheduler 1,000 times."""
    del host
    raise HostError(Why.NOT_ASKED, "the nodes of the cluster are read from pasted text only")
