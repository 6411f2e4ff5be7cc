"""Results as a table on a terminal and in docs/benchmarks.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.result import Result, Row

HEAD = ("what", "value", "limit", "kept", "")
_COMPARES = re.compile("÷|expected, off by")
_OF_A_SCRIPT = re.compile(r"(.*): (exact at \d+ Mbit|rare at \d+ Mbit|the whole batch)\b(.*)")
"""A row on one of the typical scripts: its title, how it trains, and what the number is."""


def cells(row: Row) -> tuple[str, ...]:
    sign = "≤" if row.at == "most" else "≥"
    limit = "" if row.limit is None else f"{sign} {row.limit:g}"
    kept = {None: "", True: "yes", False: "NO"}[row.kept]
    value = f"{number(row.value)} {row.unit}".strip() if math.isfinite(row.value) else "not measured"
    return row.what, value, limit, kept, row.note


def number(value: float) -> str:
    """Three significant digits; whole numbers unchanged."""
    return f"{value:g}" if value == int(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def say(result: Result, console: Console) -> None:
    if result.failure:
        console.print(f"[bold]{result.title}[/]: [red]not measured[/]: {result.failure}", highlight=False)
        return
    table = Table(*HEAD, title=result.title, title_justify="left", title_style="bold")
    for row in result.rows:
        table.add_row(*cells(row), style="red" if row.kept is False else "")
    console.print(table)
    console.print(footing(result), style="dim", highlight=False)


def footing(result: Result) -> str:
    before, after = result.load
    return (
        f"{result.at}, {result.machine}; it took {result.seconds:.0f} s; "
        f"load {before:.1f} before, {after:.1f} after."
    )


def markdown(result: Result) -> str:
    if result.failure:
        return f"Not measured on {result.at}: {result.failure}"
    lines = [HEAD, ("---",) * len(HEAD), *(cells(row) for row in result.rows)]
    rows = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"{rows}\n\n{footing(result)}"


def ratios(document: str) -> str:
    """A document's comparisons that have a limit, as a short table under their headings."""
    lines: list[tuple[str, ...]] = [("about", *HEAD[:4]), ("---",) * 5]
    heading = ""
    for line in document.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        row = line.removeprefix("| ").split(" | ")
        is_of_gains = _OF_A_SCRIPT.fullmatch(row[0]) is not None
        if len(row) == len(HEAD) and row[2] and _COMPARES.search(row[0]) and not is_of_gains:
            lines.append((heading, *row[:4]))
            heading = ""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def gains(document: str) -> str:
    """What a second laptop gains, for each typical script in a document: the time of a step alone ÷
    together, that of a whole batch ÷ half of it, and how far off the predictions were."""
    found: dict[str, dict[str, str]] = {}
    offs: list[tuple[float, bool]] = []
    for line in document.splitlines():
        row = line.removeprefix("| ").split(" | ")
        if row[1:2] != ["not measured"] and (match := _OF_A_SCRIPT.fullmatch(row[0])):
            title, how, what = match.groups()
            if what.endswith(("times alone", "half of it")):
                found.setdefault(title, {})[how] = f"{float(row[1]):.2f}"
            elif what.endswith("off by"):
                offs.append((float(row[1]), row[3] == "yes"))
    # The faster network first; exact before rare.
    ways = sorted({way for each in found.values() for way in each}, key=lambda way: way[:5])
    ways.sort(key=lambda way: int("".join(filter(str.isdigit, way)) or 0), reverse=True)
    head = ("script", *(way.replace("the whole batch", "whole batch ÷ half") for way in ways))
    lines = [head, ("---",) * len(head)]
    lines += [(title, *(each.get(way, "") for way in ways)) for title, each in found.items()]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    within = sum(is_kept for _, is_kept in offs)
    return (
        f"{table}\n\nOf {len(offs)} predictions made before the first step, {within} were within 20 % or the "
        f"range shown; the worst was off by {100 * max((off for off, _ in offs), default=0):.0f} %."
    )


def placed(document: str, name: str, words: str) -> str:
    """``document`` with ``words`` between the marks of that name. Raises ValueError if there are none."""
    begin, end = (f"<!-- {word} {name} -->" for word in ("begin", "end"))
    places = re.findall(f"{re.escape(begin)}.*?{re.escape(end)}", document, re.DOTALL)
    if len(places) != 1:
        raise ValueError(f"the document has {len(places)} places for {name}, not one")
    return document.replace(places[0], f"{begin}\n{words}\n{end}")


def rewritten(document: str, results: Iterable[Result]) -> str:
    """``document`` with each result between its two marks. Raises ValueError if marks are missing."""
    for result in results:
        document = placed(document, result.name, markdown(result))
    return document
