"""Numbers as words, and the document that holds them."""

import io
import math

import pytest
from rich.console import Console

from bench import tables
from bench.__main__ import DOCUMENT, MEASUREMENTS, README
from bench.result import Result, Row

GOOD = Result(
    name="one",
    title="One",
    rows=(Row(what="a | b", value=0.5, unit="s", limit=1.5), Row(what="c", value=3.0, limit=4.0, at="least")),
    at="2026-01-02",
    machine="2 cores, no GPU",
    load=(0.5, 1.0),
)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (57.0, "57"), (0.12345, "0.123"), (12.345, "12.3"), (4989.4, "4,989")],
)
def test_numbers_have_three_digits_that_count(value: float, words: str) -> None:
    assert tables.number(value) == words


def test_a_row_says_its_limit_and_whether_it_is_kept() -> None:
    first, second = (tables.cells(row) for row in GOOD.rows)
    assert first == ("a | b", "0.5 s", "≤ 1.5", "yes", "")
    assert second == ("c", "3", "≥ 4", "NO", "")


def test_a_result_replaces_what_stands_between_its_marks_and_nothing_else() -> None:
    before = (
        "# B\n<!-- begin one -->\nold\n<!-- end one -->\nkept\n<!-- begin two -->\nkept\n<!-- end two -->\n"
    )
    after = tables.rewritten(before, [GOOD])
    assert "old" not in after
    assert after.count("\nkept\n") == 2
    assert "| a \\| b | 0.5 s | ≤ 1.5 | yes |  |" in after
    assert "2026-01-02, 2 cores, no GPU" in after
    assert tables.rewritten(after, [GOOD]) == after


def test_a_result_without_its_place_is_not_lost_silently() -> None:
    with pytest.raises(ValueError, match="one"):
        tables.rewritten("# B\n", [GOOD])


def test_a_failure_is_said_instead_of_numbers() -> None:
    failed = Result(name="one", title="One", failure="TimeoutError: late", at="2026-01-02")
    assert "TimeoutError: late" in tables.markdown(failed)
    written = io.StringIO()
    tables.say(failed, Console(file=written, width=200))
    assert "not measured: TimeoutError: late" in written.getvalue()


@pytest.mark.parametrize("limit", [None, 1.5])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_missing_is_said_and_breaks_its_promise(value: float, limit: float | None) -> None:
    row = Row(what="a", value=value, unit="ms", limit=limit, at="least")
    assert tables.cells(row)[1] == "not measured"
    assert tables.cells(row)[3] == "NO"
    result = Result(name="one", title="One", rows=(*GOOD.rows[:1], row))
    assert not result.ok
    assert "| a | not measured |" in tables.markdown(result)


def test_a_terminal_shows_each_row() -> None:
    written = io.StringIO()
    tables.say(GOOD, Console(file=written, width=200))
    assert "a | b" in written.getvalue()
    assert "NO" in written.getvalue()


def test_the_document_has_a_place_for_each_measurement() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, (title, _) in MEASUREMENTS.items():
        tables.rewritten(text, [Result(name=name, title=title)])


def test_the_readme_has_a_place_for_what_is_compared() -> None:
    text = README.read_text(encoding="utf-8")
    page = "# A\n## B\n| x ÷ y | 2 | ≤ 3 | yes | note |\n| x | 2 |  |  |  |"
    assert "| B | x ÷ y | 2 | ≤ 3 | yes |" in tables.placed(text, "ratios", tables.ratios(page))


def test_the_readme_shows_what_a_second_laptop_gains() -> None:
    text = README.read_text(encoding="utf-8")
    rows = {
        "a step alone": "20 ms",
        "the whole batch ÷ half of it": "1.5",
        "rare at 100 Mbit, times alone": "1.25",
        "exact at 240 Mbit, times alone": "1.4",
        "rare at 240 Mbit, times alone": "not measured",
        "exact at 240 Mbit: expected, off by": "0.25",
        "rare at 100 Mbit: expected, off by": "0.1",
    }
    kept = {value: "yes" if value == "0.1" else "NO" for value in rows.values()}
    lines = (f"| net: {what} | {value} | ≤ 1 | {kept[value]} |  |" for what, value in rows.items())
    page = "\n".join(("# A", *lines))
    found = tables.placed(text, "gains", tables.gains(page))
    assert "| script | exact at 240 Mbit | rare at 100 Mbit | whole batch ÷ half |" in found
    assert "| net | 1.40 | 1.25 | 1.50 |" in found
    assert "Of 2 predictions made before the first step, 1 were within 20 % or the range shown" in found
    assert "off by 25 %." in found
    assert "net" not in tables.ratios(page)
