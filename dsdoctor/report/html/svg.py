"""Drawings as data: shapes in user units, written into the page by a template.

A template escapes every attribute and every text, so nothing here builds markup. Colors are
classes of the style sheet: the policy of a page allows no inline style, and classes follow the
reader's theme.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

#: Series have eight different colors, then the colors repeat.
COLORS = 8


def color(number: int) -> int:
    """Number of a series' color, from 1.

    >>> color(0), color(7), color(8)
    (1, 8, 1)
    """
    return number % COLORS + 1


@dataclasses.dataclass(frozen=True)
class Shape:
    """One SVG element.

    Attributes:
        tag: `rect`, `line`, `path`, `circle` or `text`.
        attributes: its attributes; names are fixed, values are escaped.
        text: content of a `text`.
        title: what a pointer over the shape shows.
    """

    tag: str
    attributes: dict[str, str]
    text: str = ""
    title: str = ""


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A picture.

    Attributes:
        width, height: size in user units.
        label: what it shows, for screen readers.
        shapes: in the order in which they are drawn.
        css: classes of the `svg` element.
        stretch: the width follows the page, the height stays; only for pictures without text.
        narrow: the same drawing for a phone, where this one would be too small to read.
    """

    width: float
    height: float
    label: str
    shapes: tuple[Shape, ...]
    css: str = "chart"
    stretch: bool = False
    narrow: Drawing | None = None


@dataclasses.dataclass(frozen=True)
class Frame:
    """The size of a chart, and the space left free around its axes.

    Attributes:
        width: width of the drawing.
        left: room for the numbers of the y axis.
        right: room for half of the last number of the x axis.
    """

    width: float
    left: float
    right: float

    def across(self, x: float, span: tuple[float, float]) -> float:
        """A value of the x axis as a coordinate."""
        low, high = span
        return self.left + (x - low) / ((high - low) or 1.0) * (self.end - self.left)

    @property
    def end(self) -> float:
        """Where the axis ends."""
        return self.width - self.right


WIDE, NARROW = Frame(720.0, 64.0, 12.0), Frame(360.0, 56.0, 12.0)


def fitted(draw: Callable[[Frame], Drawing]) -> Drawing:
    """A drawing for a page, with a narrow one for a phone."""
    return dataclasses.replace(draw(WIDE), narrow=draw(NARROW))


def number(value: float) -> str:
    """A coordinate, short.

    >>> number(1 / 3), number(2.0)
    ('0.33', '2')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def rect(
    x: float, y: float, width: float, height: float, css: str, *, title: str = "", round_: float = 0
) -> Shape:
    """A rectangle."""
    attributes = {
        "x": number(x),
        "y": number(y),
        "width": number(max(0.0, width)),
        "height": number(height),
        "class": css,
    }
    if round_:
        attributes["rx"] = number(round_)
    return Shape("rect", attributes, title=title)


def line(x1: float, y1: float, x2: float, y2: float, css: str, **more: str) -> Shape:
    """A straight line; `more` are further attributes, `_` for `-`."""
    attributes = {"x1": number(x1), "y1": number(y1), "x2": number(x2), "y2": number(y2)}
    extra = {name.replace("_", "-"): value for name, value in more.items()}
    return Shape("line", attributes | {"class": css} | extra)


def circle(x: float, y: float, radius: float, css: str, *, title: str = "") -> Shape:
    """A circle."""
    return Shape(
        "circle",
        {"cx": number(x), "cy": number(y), "r": number(radius), "class": css},
        title=title,
    )


def path(commands: str, css: str) -> Shape:
    """A path."""
    return Shape("path", {"d": commands, "class": css})


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> Shape:
    """A line of text; `anchor` is `start`, `middle` or `end`."""
    return Shape(
        "text",
        {"x": number(x), "y": number(y), "class": css, "text-anchor": anchor},
        text=words,
    )


def arrow(x1: float, y1: float, x2: float, y2: float) -> tuple[Shape, Shape]:
    """A line with a head at its end: up or down first, then along the row of its end."""
    back = math.copysign(8.0, x1 - x2)
    points = [(x2, y2)] + [
        (x2 + back * math.cos(0.45), y2 + 8 * math.sin(t)) for t in (0.45, -0.45)
    ]
    head = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + "Z"
    way = f"M{number(x1)} {number(y1)}V{number(y2)}H{number(x2)}"
    return path(way, "arrow"), path(head, "head")


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers that cover a range.

    >>> ticks(0, 9.3)
    [0.0, 2.5, 5.0, 7.5, 10.0]
    """
    if not high > low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * place, 12) for place in range(first, last + 1)]


@dataclasses.dataclass(frozen=True)
class Series:
    """One curve of a chart.

    Attributes:
        name: what it shows.
        points: in order of x; y is None if nothing was measured.
        dashed: drawn as a dashed line, for readers who cannot distinguish its color.
    """

    name: str
    points: Sequence[tuple[float, float | None]]
    dashed: bool = False


HEIGHT, TOP, BOTTOM = 180.0, 32.0, 24.0
#: Unit of an axis whose numbers follow it: `step 20`.
STEP = "step"
#: Between these, the numbers at a grid have thousands separators.
THOUSAND, MILLION = 1e3, 1e6
#: Seconds in the units of a time axis, the longest first.
TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


def thinned(
    points: Sequence[tuple[float, float | None]], most: int
) -> list[tuple[float, float | None]]:
    """At most this many points; of each stretch, the lowest and the highest are kept."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(len(points) / (most // 2))
    kept: list[tuple[float, float | None]] = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        known = [(y, place) for place, (_, y) in enumerate(part) if y is not None]
        if not known:
            kept.append(part[0])
            continue
        places = sorted({min(known)[1], max(known)[1]})
        kept += [part[place] for place in places]
    return kept


#: A numbered point: number, coordinate, class of its color, words.
Point = tuple[int, float, str, str]


def badges(points: Sequence[Point], y: float, size: float, font: str) -> Iterable[Shape]:
    """Numbered points on a line; those that would cover each other share one: `2-9`.

    Args:
        points: the points, in the order of their coordinates.
        y: coordinate of the line.
        size: height of a point.
        font: class of the numbers.
    """
    groups: list[list[Point]] = []
    for point in points:
        if groups and point[1] - groups[-1][0][1] < size:
            groups[-1].append(point)
        else:
            groups.append([point])
    for inside in groups:
        first, x, css, _ = inside[0]
        last = inside[-1][0]
        sign = "-" if last - first == len(inside) - 1 else "…"
        words = f"{first}" if len(inside) == 1 else f"{first}{sign}{last}"
        wide = size + 0.45 * size * (len(words) - 1)
        title = "; ".join(words for _, _, _, words in inside)
        yield rect(x - wide / 2, y - size / 2, wide, size, css, title=title, round_=size / 2)
        yield text(x, y + size * 0.22, words, font, "middle")


def chart(
    title: str,
    series: Sequence[Series],
    span: tuple[float, float],
    *,
    x_unit: str,
    limit: float | None = None,
    zero: bool = False,
    marks: Sequence[tuple[float, str, str]] = (),
) -> Drawing | None:
    """Curves over one axis; None if nothing was measured.

    Args:
        title: what is drawn, with the unit.
        series: the curves.
        span: first and last value of the x axis, the same for all charts of a page.
        x_unit: unit of the x axis.
        limit: a level that is drawn as a dashed line.
        zero: the y axis begins at 0.
        marks: events on the x axis: value, class of their color, words.
    """
    values = [y for one in series for _, y in one.points if y is not None and math.isfinite(y)]
    if not values:
        return None
    low, high = (0.0 if zero else min(values)), max(values)
    if limit is not None:
        high = max(high, limit)
    levels = ticks(low, high)
    low, high = levels[0], levels[-1]
    label = f"{title}: {min(values):g} to {max(values):g}"

    def up(y: float) -> float:
        return TOP + (high - y) / ((high - low) or 1.0) * (HEIGHT - TOP - BOTTOM)

    def draw(frame: Frame) -> Drawing:
        shapes = [text(frame.left, 13, title)]
        for mark in levels:
            shapes.append(line(frame.left, up(mark), frame.end, up(mark), "axis"))
            shapes.append(text(frame.left - 6, up(mark) + 4, _tick(mark), "tick", "end"))
        shapes += x_axis(frame, span, x_unit, HEIGHT)
        points = [
            (number_, frame.across(at, span), css, words)
            for number_, (at, css, words) in enumerate(marks, start=1)
        ]
        shapes += [line(x, TOP, x, HEIGHT - BOTTOM, f"event {css}") for _, x, css, _ in points]
        shapes += badges(points, TOP - 1, 13, "on mini")
        for place, one in enumerate(series):
            drawn = _curve(one, frame, span, up)
            shapes.append(path(drawn, f"series l{color(place)}" + " dashed" * one.dashed))
        if limit is not None:
            shapes.append(line(frame.left, up(limit), frame.end, up(limit), "limit"))
        return Drawing(frame.width, HEIGHT, label, tuple(shapes))

    return fitted(draw)


def _tick(mark: float) -> str:
    """The number at a line of the grid.

    >>> _tick(80_000.0), _tick(2.5), _tick(2e6)
    ('80,000', '2.5', '2e+06')
    """
    return f"{mark:,.0f}" if THOUSAND <= abs(mark) < MILLION else f"{mark:g}"


def x_axis(frame: Frame, span: tuple[float, float], unit: str, height: float) -> Iterable[Shape]:
    """Numbers below a drawing; long times are in minutes or hours."""
    size = 1.0
    if unit == "s":
        size, unit = next((row for row in TIMES if span[1] - span[0] >= 2 * row[0]), (1.0, unit))
    low, high = span[0] / size, span[1] / size
    marks = [mark for mark in ticks(low, high, 6) if low <= mark <= high]
    for mark in marks:
        words = f"{mark:g}"
        if mark == marks[0]:
            words = f"{unit} {words}" if unit == STEP else f"{words} {unit}"
        yield text(frame.across(mark * size, span), height - 6, words, "tick", "middle")


def _curve(
    series: Series, frame: Frame, span: tuple[float, float], up: Callable[[float], float]
) -> str:
    parts: list[str] = []
    gap = True
    for x, y in thinned(series.points, round(frame.width)):
        if y is None or not math.isfinite(y):
            gap = True
            continue
        parts.append(f"{'M' if gap else 'L'}{number(frame.across(x, span))} {number(up(y))}")
        gap = False
    if len(parts) == 1:  # a lone point has no length; it is drawn as a dash
        parts.append("h4")
    return "".join(parts)


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of a stacked bar.

    Attributes:
        name: what it is.
        size: how much.
        color: number of its color, 1 to COLORS.
    """

    name: str
    size: float
    color: int


def stacked(label: str, parts: Sequence[Part], limit: float | None, scale: float) -> Drawing:
    """Parts next to each other on a bar; the limit is a dashed line across it.

    Args:
        label: what the bar shows, in words.
        parts: in order.
        limit: the amount available, None = not known.
        scale: size that fills the whole width.
    """
    width, height, at = 1000.0, 22.0, 0.0
    shapes = [rect(0, 0, width, height, "track")]
    for part in parts:
        size = part.size / scale * width
        shapes.append(rect(at, 2, size, height - 4, f"f{part.color}", title=part.name))
        at += size
    if limit is not None:
        x = min(limit / scale * width, width - 1)
        shapes += [
            line(x, 0, x, height, css, vector_effect="non-scaling-stroke")
            for css in ("halo", "limit")  # visible on every color of the bar
        ]
    return Drawing(width, height, label, tuple(shapes), css="bar tall", stretch=True)
