"""Names of nodes, folded and unfolded: `gpu[001-037,041]`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dsdoctor.errors import UsageError

#: More nodes than any cluster has: a typing error such as `gpu[1-10000000]`.
MOST = 200_000
_PART = re.compile(r"\[([^\[\]]*)\]")
_SHAPE = re.compile(r"[A-Za-z0-9_.-]+")


def expand(text: str) -> list[str]:
    """The names that a folded text stands for, in its order.

    >>> expand("gpu[001-003,7],login")
    ['gpu001', 'gpu002', 'gpu003', 'gpu7', 'login']
    >>> expand("r[1-2]n[1-2]")
    ['r1n1', 'r1n2', 'r2n1', 'r2n2']

    Raises:
        UsageError: it is no list of nodes.
    """
    found: dict[str, None] = {}
    for item in re.split(r",(?![^\[]*\])", text):
        if item.strip():
            found.update(dict.fromkeys(_item(item.strip())))
        if len(found) > MOST:
            raise UsageError(f"`--nodes {text}` names more than {MOST} nodes")
    if not found:
        raise UsageError(f"`--nodes {text}` names no node; expected such as `gpu[001-512]`")
    return list(found)


def _item(item: str) -> list[str]:
    part = _PART.search(item)
    if part is None:
        if not _SHAPE.fullmatch(item):
            raise UsageError(f"`{item}` is no name of a node; expected such as `gpu[001-512]`")
        return [item]
    head, tail = item[: part.start()], item[part.end() :]
    rests = _item(tail) if tail else [""]
    found: list[str] = []
    for piece in part[1].split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
            raise UsageError(f"`[{part[1]}]` is no range; expected such as `[001-037,041]`")
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if (last - first + 1) * len(rests) > MOST:
            raise UsageError(f"`{item}` names more than {MOST} nodes")
        width = len(ends[1])
        for number in range(first, last + 1):
            middle = f"{head}{number:0{width}d}"
            if not _SHAPE.fullmatch(middle):
                raise UsageError(f"`{item}` is no name of a node; expected such as `gpu[001-512]`")
            found += [middle + rest for rest in rests]
    return found


def fold(names: Iterable[str]) -> str:
    """The shortest way to write names that differ in one number.

    >>> fold(["gpu003", "gpu001", "gpu002", "gpu041"])
    'gpu[001-003,041]'
    >>> fold(["n9", "n10", "login"]), fold(["a1"]), fold([])
    ('login,n[9-10]', 'a1', '')
    >>> fold(["r1n1", "r1n2", "r2n1"])
    'r1n[1-2],r2n1'
    """
    groups: dict[tuple[str, str, int], list[int]] = {}
    plain: list[str] = []
    for name in dict.fromkeys(names):
        found = re.fullmatch(r"(.*?)(\d+)(\D*)", name)
        if found is None:
            plain.append(name)
            continue
        digits = found[2]
        # 009 and 010 belong together, 9 and 10 too, 09 and 9 do not
        width = len(digits) if digits.startswith("0") else 0
        groups.setdefault((found[1], found[3], width), []).append(int(digits))
    _join_padded(groups)
    texts = plain + [_group(*key, numbers) for key, numbers in groups.items()]
    return ",".join(sorted(texts))


def _join_padded(groups: dict[tuple[str, str, int], list[int]]) -> None:
    """Moves `100` into the group of `001`: the same width, though it begins with no zero."""
    for (head, tail, width), numbers in list(groups.items()):
        loose = groups.get((head, tail, 0))
        if not width or not loose:
            continue
        fitting = [number for number in loose if len(str(number)) == width]
        numbers.extend(fitting)
        left = [number for number in loose if number not in set(fitting)]
        if left:
            groups[head, tail, 0] = left
        else:
            del groups[head, tail, 0]


def _group(head: str, tail: str, width: int, numbers: list[int]) -> str:
    ordered = sorted(set(numbers))
    if len(ordered) == 1:
        return f"{head}{ordered[0]:0{width}d}{tail}"
    ranges: list[str] = []
    start = last = ordered[0]
    for number in [*ordered[1:], None]:
        if number is not None and number == last + 1:
            last = number
            continue
        low, high = f"{start:0{width}d}", f"{last:0{width}d}"
        ranges.append(low if start == last else f"{low}-{high}")
        if number is not None:
            start = last = number
    return f"{head}[{','.join(ranges)}]{tail}"
