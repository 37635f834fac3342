"""An InfiniBand or RoCE port is not ready for a run over several nodes.

## Why it matters
NCCL uses the active ports and silently ignores the others. With one of eight ports down, the GPUs near it
send through another port, and every rank waits for them. With none, the job runs over TCP. A port in state
INIT has a link, but no subnet manager has configured it.

## What to do
Check `ibstat`. State `Down` with `Polling` points to the cable or the switch, `Disabled` to an
administrator, `Initializing` to a missing subnet manager (`opensm`).

## References
- Linux Documentation/ABI/stable/sysfs-class-infiniband (`state`, `phys_state`, `rate`)
- NCCL src/transport/net_ib (ports that are not active are ignored)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Hostfile,
    LaunchCommand,
    Missing,
    NcclFiles,
    Network,
    RdmaPort,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import listed, node_count

from ._settings import Pattern, parse_pattern, settings

CONDITION = Condition(
    "rdma-port-down",
    id="DSD806",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-ib-or-socket-interface",),
)

#: Fewer ports of a kind than this may be unused on purpose: a card's second port, storage.
MANY = 4


def _name(port: RdmaPort) -> str:
    return f"{port.device}:{port.port}"


def _words(ports: list[RdmaPort]) -> str:
    return listed(
        f"{_name(port)} ({port.state or '?'}, {port.phys_state or '?'})" for port in ports
    )


def _inactive_ports(ports: tuple[RdmaPort, ...], pattern: Pattern | None) -> list[RdmaPort]:
    """Ports that should be active: those in NCCL_IB_HCA, or a few of many equal ones."""
    if pattern is not None and not pattern.exclude:
        chosen = [port for port in ports if pattern.matches(port.device, port.port)]
        return [port for port in chosen if not port.active]
    found: list[RdmaPort] = []
    for kind in sorted({port.kind or "" for port in ports if port.link_layer == "InfiniBand"}):
        alike = [p for p in ports if (p.kind or "") == kind and p.link_layer == "InfiniBand"]
        down = [port for port in alike if not port.active and port.phys_state != "Disabled"]
        if len(alike) >= MANY and len(down) * 2 < len(alike):
            found += down
    return found


@check(CONDITION)
def ports_are_active(
    network: Network,
    env: Environment | Missing,
    files: NcclFiles | Missing,
    command: LaunchCommand | Missing,
    hostfile: Hostfile | Missing,
) -> Iterator[Finding]:
    """Judges the ports that this run would use; only for runs over several nodes."""
    found = settings(env, files, command)
    disabled = found.get("NCCL_IB_DISABLE")
    if not network.rdma or (disabled is not None and disabled.value == "1"):
        yield skip("this run uses neither InfiniBand nor RoCE")
        return
    if node_count(env, hostfile, command) == 1:
        yield skip("nothing says that this run uses several nodes")
        return
    named = found.get("NCCL_IB_HCA")
    pattern = parse_pattern(named.value) if named and named.value else None
    waiting = [port for port in network.rdma if port.state == "INIT"]
    down = [port for port in _inactive_ports(network.rdma, pattern) if port not in waiting]
    active = [port for port in network.rdma if port.active]
    if waiting:
        yield fail(
            f"{_words(waiting)} {'has' if len(waiting) == 1 else 'have'} a link, but no subnet "
            "manager has configured it",
            effect="NCCL ignores the port, and the job is slower or runs over TCP",
            hint="start the subnet manager (`opensm`, or the one in the switch)",
            ports=[_name(port) for port in waiting],
        )
    if down:
        yield (fail if not active else warn)(
            f"{_words(down)} {'is' if len(down) == 1 else 'are'} not active, but "
            f"{'NCCL_IB_HCA selects it' if pattern else 'the others of its kind on this node are'}",
            effect="the GPUs near it send through other ports, and every rank waits for them"
            if active
            else "the job runs over TCP, many times slower",
            hint="check `ibstat`, the cable and the switch port",
            ports=[_name(port) for port in down],
            active=[_name(port) for port in active],
        )
    elif (
        not active
        and not waiting
        and sum(p.link_layer == "InfiniBand" for p in network.rdma) >= MANY
    ):
        yield warn(
            f"none of the {len(network.rdma)} InfiniBand ports of this node is active, but this run"
            " uses several nodes",
            effect="the job runs over TCP, many times slower",
            hint="check `ibstat`, the cables and the switch; ports that are `Disabled` are enabled with"
            " `ibportstate` or by their driver",
            ports=[_name(port) for port in network.rdma],
            active=[],
        )
    yield from _speeds(network.rdma)
    yield ok(active=[_name(port) for port in active])


def _speeds(ports: tuple[RdmaPort, ...]) -> Iterator[Finding]:
    """Judges active ports that are slower than others of their kind."""
    for kind in sorted({port.kind or "" for port in ports}):
        rates = {
            _name(port): port.rate_gbps
            for port in ports
            if (port.kind or "") == kind and port.active and port.rate_gbps
        }
        best = max(rates.values(), default=0.0)
        slow = sorted(name for name, rate in rates.items() if rate < best)
        if slow and len(rates) >= MANY and len(slow) * 2 < len(rates):
            yield warn(
                f"{listed(slow)} {'runs' if len(slow) == 1 else 'run'} at "
                f"{min(rates.values()):g} Gb/s, but ports of the same kind run at {best:g} Gb/s",
                effect="every rank waits for the GPUs that send through it",
                hint="check cable and switch port with `ibstat` and `mlxlink`",
                ports=slow,
                rate_gbps=min(rates.values()),
                best_gbps=best,
            )
