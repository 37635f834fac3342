"""Makes long logs of recorded runs: hours of healthy steps, many ranks; the failure stays as it was.

The recordings are in `tests/logs/long`. Of each attempt in a log, the longest stretch of healthy
progress is repeated: steps, elapsed times and epochs count on, and all that stands in front of it
moves back in time, so that every time stamp is consistent. What ranks other than 0 print is printed
by as many ranks as asked for, in an order drawn with a seed. No line of the failure changes but for
the number of the step in a bar; it is joined by the same lines of the ranks that were added.

Over 400 lines because everything that makes a recorded run long is here and used nowhere else.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import json
import lzma
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "logs" / "long"
#: Ranks of a recorded run.
RECORDED = 4
#: Orders of a stretch that are drawn; they take turns.
ORDERS = 4

BAR = re.compile(
    r"(?P<pct> {0,2}\d{1,3})%\|(?P<bar>[^|\r\n]{0,60})\| (?P<n>\d+)/(?P<of>\d+) "
    r"\[(?P<spent>[\d:]+)<(?P<left>[\d:?]+)"
)
STEP = re.compile(r"(?P<word>\bstep |step=)(?P<at>\d+)(?:/(?P<all>\d+))?\b")
EPOCH = re.compile(r"'epoch': '?(?P<epoch>\d+\.\d+)")
STAMP = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?P<sep>[ T_])(?P<clock>\d\d:\d\d:\d\d)"
    r"|(?<=[EWIF])(?P<md>\d{4}) (?P<glog>\d\d:\d\d:\d\d)(?=\.\d{6})"
)
#: What varies in a line of progress.
PARTS = re.compile(f"{BAR.pattern}|{STEP.pattern}|{EPOCH.pattern}|{STAMP.pattern}")
LOSS = re.compile(r"(?<=loss )(\d+\.\d)\d+|(?<=grad_norm )(\d+\.\d)\d+")
#: Text that a healthy stretch does not contain.
ODD = re.compile(
    r"Error|Traceback|WARN|File \"|signal|SIG|xception|Killed|nan|OVERFLOW|aborted|CANCELLED"
    r"|finished|saved|train_runtime|Retry"
)
#: Heads by which a line says whose it is: the second group is the rank.
TAGS = (
    re.compile(r"(\[Rank )(\d+)(\])"),
    re.compile(r"(\[rank)(\d+)(\])"),
    re.compile(r"(^)(\d+)(: )"),
    re.compile(r"(^\[1,)(\d+)(\]<)"),
)
PROCESS = re.compile(r"((?:Sending process|Killing subprocess) )(\d+)")
#: Lines of the shortest stretch that is repeated.
LEAST = 2
#: A step that is this much smaller than the one before belongs to another attempt.
RESET = 10


class Case(NamedTuple):
    """A recorded run.

    Attributes:
        name: of the scenario.
        right: answers that are right: conditions or outcomes; `none` is a log without a failure.
        note: what happened.
        simulated: what of it was not recorded but put in, "" for nothing.
        rank: the rank that failed, None where no single one did.
        files: name to text.
    """

    name: str
    right: frozenset[str]
    note: str
    simulated: str
    rank: int | None
    files: dict[str, str]


def cases() -> list[Case]:
    """All recorded runs."""
    found = []
    for row in json.loads((FOLDER / "index.json").read_text()):
        folder = FOLDER / "logs" / row["name"]
        files = {
            str(path.relative_to(folder))[: -len(".xz")]: lzma.decompress(
                path.read_bytes()
            ).decode()
            for path in sorted(folder.rglob("*.xz"))
        }
        found.append(
            Case(
                row["name"], frozenset({row["label"], *row["also_ok"]}), row["note"],
                row.get("simulated", ""), row.get("rank"), files,
            )
        )  # fmt: skip
    return found


def rank_of(line: str) -> int | None:
    """The rank that a line says it is of."""
    for tag in TAGS:
        if found := tag.search(line):
            return int(found[2])
    return None


def as_rank(line: str, rank: int) -> str:
    """A line as that of another rank, without the bar in front of it."""
    places = [match.end() for match in BAR.finditer(line)]
    if places:
        line = line[line.find("]", places[-1]) + 1 :]
    for tag in TAGS:
        line = tag.sub(rf"\g<1>{rank}\g<3>", line)
    return line


def seconds(match: re.Match[str]) -> int:
    """A time stamp in seconds."""
    if match["md"]:
        text = f"2026-{match['md'][:2]}-{match['md'][2:]} {match['glog']}"
    else:
        text = f"{match['day']} {match['clock']}"
    when = dt.datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=dt.timezone.utc)
    return int(when.timestamp())


def elapsed(text: str) -> int:
    """`1:02:03` or `02:03` in seconds."""
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part)
    return total


def clock(total: int) -> str:
    """Seconds as a bar writes them."""
    minutes, rest = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


class Shift(NamedTuple):
    """How far a part of a log is moved.

    Attributes:
        steps: added to the number of a step.
        spent: added to the time a bar shows (s).
        epochs: added to the epoch.
        total: added to the number of all steps.
        back: taken from time stamps (s).
    """

    steps: int = 0
    spent: int = 0
    epochs: float = 0.0
    total: int = 0
    back: int = 0


@functools.lru_cache(maxsize=4096)
def _written(at: int, form: str) -> str:
    return dt.datetime.fromtimestamp(at, tz=dt.timezone.utc).strftime(form)


def _stamp(match: re.Match[str]) -> Callable[[Shift], str]:
    at = seconds(match)
    form = "%m%d %H:%M:%S" if match["md"] else f"%Y-%m-%d{match['sep']}%H:%M:%S"
    return lambda shift: _written(at - shift.back, form)


def _bar(match: re.Match[str]) -> Callable[[Shift], str]:
    n, of, spent, width = int(match["n"]), int(match["of"]), match["spent"], len(match["bar"])
    begun = elapsed(spent)

    def told(shift: Shift) -> str:
        now, total = n + shift.steps, of + shift.total
        share = now / total
        drawn = "█" * int(share * width)
        text = f"{int(share * 100):3}%|{drawn:<{width}}| {now}/{total} "
        return f"{text}[{clock(begun + shift.spent)}<{match['left']}"

    return told


def _varying(match: re.Match[str]) -> Callable[[Shift], str]:
    """A part of a line as a function of how far it is moved."""
    if match["n"]:
        return _bar(match)
    if match["at"]:
        at, word, all_of = int(match["at"]), match["word"], match["all"]
        if all_of:
            return lambda shift: f"{word}{at + shift.steps}/{int(all_of) + shift.total}"
        return lambda shift: f"{word}{at + shift.steps}"
    if match["epoch"]:
        whole, epoch = match[0], match["epoch"]
        head, digits = whole[: -len(epoch)], len(epoch.partition(".")[2])
        return lambda shift: f"{head}{float(epoch) + shift.epochs:.{digits}f}"
    return _stamp(match)


class Template:
    """Lines of which the steps, epochs and times can be moved."""

    def __init__(self, lines: Sequence[str]) -> None:
        text = "".join(line + "\n" for line in lines)
        self.parts: list[str | Callable[[Shift], str]] = []
        place = 0
        for match in PARTS.finditer(text):
            self.parts += [text[place : match.start()], _varying(match)]
            place = match.end()
        self.parts.append(text[place:])
        self.size = len(text.encode())

    def at(self, shift: Shift) -> bytes:
        """The lines, moved."""
        parts = (part if isinstance(part, str) else part(shift) for part in self.parts)
        return "".join(parts).encode()


@functools.lru_cache(maxsize=1 << 14)
def step_in(line: str) -> int | None:
    """The last step that a line reports."""
    found = [int(m["n"] or m["at"]) for m in PARTS.finditer(line) if m["n"] or m["at"]]
    return found[-1] if found else None


def is_plain(line: str) -> bool:
    """Whether a line is one of healthy progress."""
    return not ODD.search(line) and (step_in(line) is not None or "{'loss': " in line)


class Stretch(NamedTuple):
    """Healthy lines that can be repeated: from the first to the line behind the last."""

    first: int
    last: int


def stretches(lines: Sequence[str]) -> list[Stretch]:
    """The longest healthy stretch of each attempt."""
    attempts: list[list[int]] = [[]]
    before = 0
    for number, line in enumerate(lines):
        step = step_in(line)
        if step is not None and step < before - RESET:
            attempts.append([])
        before = step if step is not None else before
        attempts[-1].append(number)
    found = []
    for numbers in attempts:
        best: Stretch | None = None
        for plain, run in itertools.groupby(numbers, lambda n: is_plain(lines[n])):
            rows = list(run)
            if plain and (best is None or len(rows) > best.last - best.first):
                best = Stretch(rows[0], rows[-1] + 1)
        if best is not None and best.last - best.first >= LEAST:
            cut = (best.last - best.first) // 8  # the ends stay as they were
            found.append(Stretch(best.first + cut, best.last - cut))
    return found


class Pace(NamedTuple):
    """What one repetition of a stretch adds."""

    steps: int
    seconds: int
    epochs: float


def pace(lines: Sequence[str]) -> Pace:
    """Of a stretch: its steps, its time, its part of an epoch."""
    text = "\n".join(lines)
    steps = [step for line in lines if (step := step_in(line)) is not None]
    stamps = [seconds(match) for match in STAMP.finditer(text)]
    spent = [elapsed(match["spent"]) for match in BAR.finditer(text)]
    epochs = [float(match["epoch"]) for match in EPOCH.finditer(text)]
    clocks = stamps or spent or [0]
    return Pace(
        max(steps) - min(steps) + 1,
        max(1, max(clocks) - min(clocks)),
        (max(epochs) - min(epochs)) * len(epochs) / max(1, len(epochs) - 1) if epochs else 0.0,
    )


def crowd(
    lines: Sequence[str], ranks: Sequence[int], spared: set[int], draw: random.Random
) -> list[str]:
    """The lines joined by those of further ranks, each rank's own order kept.

    Args:
        lines: of the recorded ranks.
        ranks: further ranks.
        spared: ranks whose lines are not copied.
        draw: of the order.
    """
    models = [rank for rank in range(1, RECORDED) if rank not in spared]
    found: list[str] = []
    for who, rows in itertools.groupby(lines, rank_of):
        block = list(rows)
        found += block
        if who not in models:
            continue
        copies = [
            [LOSS.sub(lambda m: f"{m[1] or m[2]}{draw.randrange(1000):03}", as_rank(line, rank))
             for line in block]
            for rank in ranks if models[rank % len(models)] == who
        ]  # fmt: skip
        turns = [index for index, copy in enumerate(copies) for _ in copy]
        draw.shuffle(turns)
        left = [iter(copy) for copy in copies]
        found += [next(left[turn]) for turn in turns]
    return found


def ended(lines: Sequence[str], count: int) -> list[str]:
    """What a launcher says of each process it ends, for so many processes more."""
    rows = [number for number, line in enumerate(lines) if PROCESS.search(line)]
    if not rows:
        return list(lines)
    last = rows[-1]
    found = PROCESS.search(lines[last])
    process = int(found[2]) if found else 0
    more = [PROCESS.sub(rf"\g<1>{process + 10 + n}", lines[last]) for n in range(count)]
    return [*lines[: last + 1], *more, *lines[last + 1 :]]


def lengthened(
    text: str, size: int, ranks: int, spared: set[int], seed: int = 1
) -> Iterator[bytes]:
    """The recorded log as if it had trained for hours on many ranks.

    Args:
        text: as recorded.
        size: about how many bytes.
        ranks: how many.
        spared: ranks whose lines belong to no other.
        seed: of the order of lines.
    """
    draw = random.Random(seed)
    lines = text.removesuffix("\n").split("\n")
    further = range(RECORDED, ranks)
    bodies = stretches(lines)
    plans = []
    for body in bodies:
        rows = lines[body.first : body.last]
        orders = [Template(crowd(rows, further, set(), draw)) for _ in range(ORDERS)]
        plans.append((orders, pace(rows), max(1, size // len(bodies) // orders[0].size)))
    back = sum(own.seconds * times for _, own, times in plans)
    here = Shift()
    place = 0
    for body, (orders, own, times) in zip(bodies, plans, strict=True):
        total = own.steps * times
        front = crowd(lines[place : body.first], further, spared, draw)
        yield _front(front, here, Shift(total=total, back=back)).encode()
        for turn in range(times):
            yield orders[turn % ORDERS].at(
                Shift(own.steps * turn, own.seconds * turn, own.epochs * turn, total,
                      back - own.seconds * turn)
            )  # fmt: skip
        back -= own.seconds * times
        here = Shift(own.steps * times, own.seconds * times, own.epochs * times, total, back)
        # the stretch as recorded stands at the end of its repetitions
        yield Template(crowd(lines[body.first : body.last], further, set(), draw)).at(here)
        place = body.last
    rest = ended(crowd(lines[place:], further, spared, draw), ranks - RECORDED)
    yield Template(rest).at(here)


def _front(lines: Sequence[str], before: Shift, after: Shift) -> str:
    """The lines between two stretches: those of the attempt before, then those of the next."""
    cut, reached = 0, 0
    for number, line in enumerate(lines):
        step = step_in(line)
        if step is not None and step < reached - RESET:
            break
        reached = max(reached, step or 0)
        cut = number + 1
    if before == Shift():
        cut = 0
    rows = Template(lines[:cut]).at(before).decode() if cut else ""
    return rows + (Template(lines[cut:]).at(after).decode() if lines[cut:] else "")


def write(case: Case, folder: Path, size: int, ranks: int) -> list[str]:
    """Writes the long form of a case; the paths that `diagnose` is given."""
    spared = {0} if case.rank is None else {0, case.rank}
    per_rank = {
        name: match
        for name in case.files
        if (match := re.search(r"(.*/)(\d)(/std\w+\.log)$", name))
    }
    share = size // max(1, ranks) if per_rank else size
    for name, text in case.files.items():
        names = {name: text}
        match = per_rank.get(name)
        if match and int(match[2]) not in spared:
            models = [rank for rank in range(1, RECORDED) if rank not in spared]
            names |= {
                f"{match[1]}{rank}{match[3]}": "\n".join(as_rank(line, rank) for line in text.split("\n"))
                for rank in range(RECORDED, ranks) if models[rank % len(models)] == int(match[2])
            }  # fmt: skip
        for own, words in names.items():
            path = folder / own
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                out.writelines(
                    lengthened(words, share, RECORDED if match else ranks, spared, seed=len(own))
                )
    return [str(folder)] if len(case.files) > 1 else [str(folder / "train.log")]


def is_right(case: Case, said: str) -> bool:
    """Whether an answer (a condition or an outcome) is one of those that are right."""
    return {"clean": "none"}.get(said, said) in case.right
