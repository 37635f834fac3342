"""Names of nodes, folded and unfolded: `gpu[001-037,041]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dsdoctor.errors import UsageError
from dsdoctor.model.host_name import is_host_name
from dsdoctor.model.plain import shortened

#: More nodes than any cluster has: a typo such as `gpu[1-10000000]`.
MOST = 200_000
EXAMPLE = "gpu[001-512]"
#: Characters of a wrong value that a message quotes.
_LONGEST_SHOWN = 80
_PART = re.compile(r"\[([^\[\]]*)\]")


def expand(text: str) -> list[str]:
    """The names that a folded text expands to, in its order.

    >>> expand("gpu[001-003,7],login")
    ['gpu001', 'gpu002', 'gpu003', 'gpu7', 'login']
    >>> expand("r[1-2]n[1-2]")
    ['r1n1', 'r1n2', 'r2n1', 'r2n2']

    Raises:
        UsageError: it is not a list of nodes.
    """
    found: dict[str, None] = {}
    for item in _items(text):
        found.update(dict.fromkeys(_names_of(item)))
        if len(found) > MOST:
            raise UsageError(
                f"`--nodes {_shortened(text)}` expands to more than {MOST} nodes; pass fewer"
            )
    if not found:
        raise UsageError(
            f"`--nodes {_shortened(text)}` contains no node; expected, for example, `{EXAMPLE}`"
        )
    return list(found)


def _items(text: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    item, depth = "", 0
    for piece in re.split(r"([\[\],])", text):
        depth += {"[": 1, "]": -1}.get(piece, 0)
        if piece == "," and depth <= 0:
            yield from [item.strip()] * bool(item.strip())
            item = ""
        else:
            item += piece
    yield from [item.strip()] * bool(item.strip())


def _names_of(item: str) -> list[str]:
    """The names that one part expands to; each is a host name."""
    found = [""]
    at = 0
    for part in _PART.finditer(item):
        between = item[at : part.start()]
        numbers = [number for piece in part[1].split(",") for number in _numbers(piece, part[1])]
        if len(found) * len(numbers) > MOST:
            raise UsageError(f"`{_shortened(item)}` expands to more than {MOST} nodes; pass fewer")
        found = [f"{head}{between}{number}" for head in found for number in numbers]
        at = part.end()
    found = [head + item[at:] for head in found]
    for name in found:
        if not is_host_name(name):
            raise UsageError(
                f"`{_shortened(item)}` is not a host name; expected, for example, `{EXAMPLE}`"
            )
    return found


def _numbers(piece: str, whole: str) -> list[str]:
    ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", piece.strip())
    first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
    if ends is None or last < first:
        raise UsageError(
            f"`[{_shortened(whole)}]` is not a range; expected, for example, `[001-037,041]`"
        )
    if last - first >= MOST:
        raise UsageError(f"`[{_shortened(whole)}]` expands to more than {MOST} nodes; pass fewer")
    return [f"{number:0{len(ends[1])}d}" for number in range(first, last + 1)]


def _shortened(text: str) -> str:
    return shortened(text, _LONGEST_SHOWN)


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
        # 009 and 010 can be folded, 9 and 10 too, 09 and 9 cannot
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
        left = [number for number in loose if len(str(number)) != width]
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
