"""Figures as text: medians and percentiles, Markdown tables, bars, and the pages that show them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def percentile(values: Sequence[float], part: float) -> float:
    """The least value that at least this part (above 0, at most 1) of them does not exceed; NaN of none."""
    ordered = sorted(values)
    return ordered[math.ceil(part * len(ordered)) - 1] if ordered else math.nan


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def duration(us: float) -> str:
    """Microseconds, for a reader: three digits and a unit."""
    if math.isnan(us):
        return "-"
    for limit, size, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms"), (math.inf, 1e6, "s")):
        if us < limit * 0.9995:
            return f"{digits(us / size)} {unit}"
    return "-"


def digits(value: float) -> str:
    """Two to three significant digits."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}" if value >= 9.95 else f"{value:.2g}"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def bars(values: Mapping[str, float], each: int = 8) -> str:
    """A bar for each value (in microseconds), on a logarithmic scale: ``each`` characters for a factor of ten."""
    width, least = max(map(len, values)), min(values.values())
    lines = [
        f"{name:{width}}  {'#' * (1 + round(each * math.log10(value / least)))} {duration(value)}"
        for name, value in values.items()
    ]
    return "\n".join(lines) + "\n"


def rewrite(page: Path, mark: str, text: str) -> None:
    """Puts text between ``<!-- MARK:begin -->`` and ``<!-- MARK:end -->``; the program ends where they are missing."""
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    whole = page.read_text("utf-8")
    head, found, rest = whole.partition(begin)
    _, ended, tail = rest.partition(end)
    if not (found and ended):
        sys.exit(f"{page} has no {begin} followed by {end}: put them where the figures belong.")
    page.write_text(f"{head}{begin}\n{text.rstrip()}\n{end}{tail}", "utf-8")
