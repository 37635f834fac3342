"""The machine as a picture: CPU sockets, NUMA nodes, PCIe bridges, adapters, GPUs, NVLinks."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus, GpuTopology
from dsdoctor.model.facts.pci import PciPlace, PciTree
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.matrix_of import ranges
from dsdoctor.model.partial import NotStated
from dsdoctor.report.html.page import gib
from dsdoctor.report.html.svg import Drawing, Part, Shape, circle, line, stacked, text

#: A picture of links needs two GPUs.
PAIR = 2
SIZE = 300.0
#: Of more GPUs, not every order of a ring is tried: 7! are 5,040.
MOST_TRIED = 8


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU or a network adapter.

    Attributes:
        name: `GPU 0` or `mlx5_0`.
        kind: `gpu` or `nic`.
        lines: what is known about it, one fact a line.
        status: `ok`, `warn` or `fail`.
        words: the status in words: what is wrong, and the conditions found for it.
        chosen: the run selected it explicitly.
        bar: memory in use, None if it was not read.
    """

    name: str
    kind: str
    lines: tuple[str, ...]
    status: str = "ok"
    words: tuple[str, ...] = ()
    chosen: bool = False
    bar: Drawing | None = None


@dataclasses.dataclass
class Box:
    """A CPU socket, a NUMA node, a PCIe root or a PCIe switch, and what is below it.

    Attributes:
        kind: `socket`, `numa`, `root`, `port` or `switch`.
        name: what it is called.
        boxes: below it.
        devices: directly below it.
    """

    kind: str
    name: str
    boxes: list[Box] = dataclasses.field(default_factory=list)
    devices: list[Device] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Machine:
    """The picture.

    Attributes:
        numa: boxes of the NUMA nodes, or one for devices whose NUMA node was not read; within
            boxes of the CPU sockets where a socket has several NUMA nodes.
        links: NVLinks between GPUs; None if there are none.
        ring: the ring over the GPUs of the run, in words; "" if it is not known.
        chosen: the run selected some of the GPUs.
        notes: what the picture does not show, and why.
    """

    numa: Sequence[Box]
    links: Drawing | None
    notes: tuple[str, ...]
    ring: str = ""
    chosen: bool = False


#: Of each GPU, by its index: status and condition of what was found.
Found = Mapping[int, Sequence[tuple[str, str]]]
#: Statuses of a device, the worst first; an inconclusive finding is drawn as a warning.
_DRAWN = {"fail": "fail", "crash": "fail", "unknown": "warn", "warn": "warn"}


def picture(
    gpus: Gpus | Missing,
    topology: GpuTopology | Missing,
    tree: PciTree | Missing,
    run: RunNeeds,
    found: Found,
) -> Machine | None:
    """The picture of a machine, None if no GPU was read."""
    if isinstance(gpus, Missing) or not (listed := _listed(gpus)):
        return None
    notes = []
    if isinstance(tree, Missing):
        notes.append(f"PCIe switches and network adapters are not shown: {tree.detail}")
    if isinstance(topology, Missing):
        notes.append(f"links between GPUs are not shown: {topology.detail}")
    count = _count(gpus)
    if count is not None and count > len(listed):
        notes.append(f"{count} GPUs are installed, {len(listed)} were read")
    names = {gpu.name for gpu in listed}
    rows: list[tuple[int | None, tuple[str, ...], Device]] = []
    for gpu in listed:
        place = None if isinstance(tree, Missing) else tree.gpu(gpu.pci_bdf)
        numa = gpu.numa_node if place is None or place.numa_node is None else place.numa_node
        rows.append(
            (numa, _pci_path(place), _gpu(gpu, run, found.get(gpu.index, ()), named=len(names) > 1))
        )
    for nic in () if isinstance(tree, Missing) else tree.nics:
        device = Device(name=nic.name, kind="nic", lines=("RDMA adapter", nic.bdf))
        rows.append((nic.numa_node, _pci_path(nic), device))
    if len(rows) == len(listed) and not any(one.lines or one.words for _, _, one in rows):
        return None  # of a paste: that there are so many GPUs is said above the findings
    numa_boxes: list[tuple[int | None, Box]] = []
    for node in sorted({row[0] for row in rows}, key=lambda node: (node is None, node)):
        inside = [(way, device) for numa, way, device in rows if numa == node]
        name = "NUMA node not reported" if node is None else f"NUMA node {node}"
        cpus = _cpus(listed, node)
        box = Box("numa", f"{name} · CPUs {cpus}" if cpus else name)
        _fill(box, inside, 0)
        numa_boxes.append((node, box))
    links, ring = None, ""
    named_ones = [gpu for gpu in listed if is_chosen(gpu, run)]
    if not isinstance(topology, Missing):
        joined = {frozenset((p.a, p.b)): p.nvlinks for p in topology.pairs if p.nvlinks}
        order = ring_of([gpu.index for gpu in named_ones or listed], joined)
        links = _links(listed, topology, run, order)
        ring = "" if links is None else _ring_words(order, joined)
    return Machine(
        numa=_in_sockets(numa_boxes, {} if isinstance(tree, Missing) else _sockets(tree)),
        links=links,
        notes=tuple(notes),
        ring=ring,
        chosen=bool(named_ones),
    )


def ring_of(indices: Sequence[int], links: Mapping[frozenset[int], int]) -> list[int]:
    """The ring over some GPUs whose weakest hop has the most NVLinks.

    Of more than MOST_TRIED GPUs, the order of their numbers.

    >>> pairs = {frozenset(pair): 4 for pair in ((0, 2), (2, 1), (1, 3), (3, 0))}
    >>> ring_of([0, 1, 2, 3], pairs)
    [0, 2, 1, 3]
    """
    if not PAIR <= len(indices) <= MOST_TRIED:
        return list(indices)
    first, *rest = indices

    def worth(order: tuple[int, ...]) -> tuple[int, int]:
        hops = [links.get(hop, 0) for hop in _hops([first, *order])]
        return min(hops), sum(hops)

    return [first, *max(itertools.permutations(rest), key=worth)]


def _hops(order: Sequence[int]) -> list[frozenset[int]]:
    """Pairs of neighbors on a ring; two GPUs have one."""
    closed = [*order, order[0]] if len(order) > PAIR else order
    return [frozenset(pair) for pair in itertools.pairwise(closed)]


def _ring_words(order: Sequence[int], links: Mapping[frozenset[int], int]) -> str:
    if len(order) < PAIR:
        return ""
    hops = [links.get(hop, 0) for hop in _hops(order)]
    way = " – ".join(map(str, [*order, order[0]] if len(order) > PAIR else order))
    if min(hops) == 0:
        return (
            f"No ring of NVLinks joins these GPUs: {hops.count(0)} of {len(hops)} hops of the "
            f"dashed one ({way}) use PCIe or the host."
        )
    least = f"{min(hops)} NVLinks" if min(hops) == max(hops) else f"at least {min(hops)} NVLinks"
    return f"Dashed: a ring over {way} has {least} on every hop; NCCL chooses its own order."


def _sockets(tree: PciTree) -> dict[int | None, int]:
    """NUMA nodes and their CPU sockets."""
    return {
        place.numa_node: place.socket
        for place in (*tree.gpus, *tree.nics)
        if place.socket is not None
    }


def _in_sockets(boxes: Sequence[tuple[int | None, Box]], of: Mapping[int | None, int]) -> list[Box]:
    """NUMA nodes in their CPU sockets; one that is alone in its socket is named with it."""
    found: list[Box] = []
    sockets: dict[int, Box] = {}
    alone = len(set(of.values())) == len(of)
    for node, box in boxes:
        number = of.get(node)
        if number is None:
            found.append(box)
            continue
        if alone:
            box.name = f"CPU socket {number} · {box.name}"
            found.append(box)
            continue
        if number not in sockets:
            sockets[number] = Box("socket", f"CPU socket {number}")
            found.append(sockets[number])
        sockets[number].boxes.append(box)
    return found


def _pci_path(place: PciPlace | None) -> tuple[str, ...]:
    return () if place is None or not place.root else (place.root, *place.path)


def _cpus(gpus: Sequence[Gpu], node: int | None) -> str:
    near = {cpu for gpu in gpus if gpu.numa_node == node for cpu in gpu.cpu_affinity or ()}
    return "" if node is None else ranges(near)


def _fill(box: Box, rows: Sequence[tuple[tuple[str, ...], Device]], depth: int) -> None:
    """Sorts devices below a box by the bridges above them; a bridge to one device is left out."""
    below: dict[str, list[tuple[tuple[str, ...], Device]]] = {}
    for way, device in rows:
        if len(way) > depth:
            below.setdefault(way[depth], []).append((way, device))
        else:
            box.devices.append(device)
    for bridge, inside in below.items():
        if len(inside) == 1:
            box.devices.append(inside[0][1])
            continue
        kind, name = _bridge(bridge, inside, depth)
        if len(below) == 1 and not box.devices and box.kind != "numa":
            box.kind, box.name = kind, name  # everything is below it: one box is enough
            _fill(box, inside, depth + 1)
            continue
        inner = Box(kind, name)
        _fill(inner, inside, depth + 1)
        box.boxes.append(inner)
    box.devices.sort(key=lambda device: device.kind)


def _bridge(
    name: str, rows: Sequence[tuple[tuple[str, ...], Device]], depth: int
) -> tuple[str, str]:
    """What a bridge with several devices below it is: only a switch has ports of its own."""
    if depth == 0:
        return "root", f"PCIe root {name}"
    switch = any(len(way) > depth + 1 for way, _ in rows)
    return ("switch", f"PCIe switch {name}") if switch else ("port", f"PCIe port {name}")


def _listed(gpus: Gpus) -> tuple[Gpu, ...]:
    """The GPUs that were read; of a paste, the list may be longer, and have no length."""
    try:
        return tuple(gpu for gpu in gpus.gpus)  # a tuple asks for the length
    except NotStated:
        return ()


def _count(gpus: Gpus) -> int | None:
    """How many are installed; None if a paste does not say so."""
    try:
        return gpus.count
    except NotStated:
        return None


def _gpu(gpu: Gpu, run: RunNeeds, found: Sequence[tuple[str, str]], *, named: bool) -> Device:
    number: int | None = gpu.index  # of some GPUs, a paste gives none
    lines = [gpu.name or "name not reported"] if named else []
    if gpu.pci_bdf:
        lines.append(gpu.pci_bdf)
    bar = None
    total, used = gpu.memory_total_bytes, gpu.memory_used_bytes
    if total and used is not None:
        memory = f"{gib(used)} of {gib(total)} in use"
        bar = stacked(memory, [Part("in use", used, 1)], None, total)
        lines.append(memory)
    elif total:
        lines.append(gib(total))
    if gpu.health.temperature_c is not None:
        lines.append(f"{gpu.health.temperature_c} °C")
    pcie = gpu.pcie
    status, words = "ok", []
    if pcie.width is not None and pcie.max_width is not None:
        lines.append(f"PCIe ×{pcie.width} of ×{pcie.max_width}")
        if pcie.width < pcie.max_width:
            status = "warn"
            words.append(f"PCIe ×{pcie.width}")
    if gpu.links:
        up = len(gpu.active_links)
        lines.append(f"NVLink: {up} of {len(gpu.links)} up")
        if up < len(gpu.links):
            status = "warn"
            down = len(gpu.links) - up
            words.append("1 NVLink down" if down == 1 else f"{down} NVLinks down")
    if gpu.mig_devices:
        lines.append(f"MIG: {len(gpu.mig_devices)} slices")
    if gpu.error is not None:
        status = "fail"
        words.append(gpu.error.name.replace("_", " ").lower())
        lines.append(gpu.error.message)
    drawn = [status, *(_DRAWN[one] for one, _ in found if one in _DRAWN)]
    words += dict.fromkeys(condition for _, condition in found)
    return Device(
        name="GPU" if number is None else f"GPU {number}",
        kind="gpu",
        lines=tuple(lines),
        status=next(one for one in ("fail", "warn", "ok") if one in drawn),
        words=tuple(words),
        chosen=is_chosen(gpu, run),
        bar=bar,
    )


def is_chosen(gpu: Gpu, run: RunNeeds) -> bool:
    """Whether the run selected this GPU."""
    return str(gpu.index) in run.gpus or bool(gpu.uuid and gpu.uuid in run.gpus)


def _links(
    gpus: Sequence[Gpu], topology: GpuTopology, run: RunNeeds, order: Sequence[int]
) -> Drawing | None:
    """The GPUs on a circle, a line for each pair that NVLinks join; its label counts them."""
    joined = {(p.a, p.b): p.nvlinks for p in topology.pairs if p.nvlinks}
    if len(gpus) < PAIR or not joined:
        return None
    middle, radius = SIZE / 2, SIZE / 2 - 30
    at: dict[int, tuple[float, float]] = {}
    for place, gpu in enumerate(gpus):
        turn = 2 * math.pi * place / len(gpus) - math.pi / 2
        at[gpu.index] = (middle + radius * math.cos(turn), middle + radius * math.sin(turn))
    most = max(joined.values())
    shapes: list[Shape] = []
    for (a, b), count in joined.items():
        if a in at and b in at:
            thick = f"{0.6 + 1.8 * count / most:.1f}"
            css = "wire" if count == most else "wire few"
            shapes.append(line(*at[a], *at[b], css, stroke_width=thick))
    hops = _hops(order) if len(order) >= PAIR else []
    for one, other in (sorted(hop) for hop in hops):
        shapes.append(line(*at[one], *at[other], "loop"))
    for gpu in gpus:
        x, y = at[gpu.index]
        down = bool(gpu.links) and len(gpu.active_links) < len(gpu.links or ())
        css = "node" + (" s-fail" if gpu.error else " s-warn" if down else "")
        css += " chosen" if is_chosen(gpu, run) else ""
        shapes += [circle(x, y, 20, css), text(x, y + 4, f"GPU{gpu.index}", "", "middle")]
    counts = sorted(set(joined.values()))
    words = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    pairs = len(gpus) * (len(gpus) - 1) // 2
    label = f"{len(joined)} of {pairs} pairs of GPUs are joined by {words} NVLinks each"
    return Drawing(SIZE, SIZE, label, tuple(shapes), css="ring")
