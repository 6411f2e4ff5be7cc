"""``python -m bench``: what it runs, prints and returns, with measurements that take no time."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench import __main__ as bench
from bench.result import Row


class Measurements(dict[str, tuple[str, str]]):
    """A test's made-up measurements, replacing all others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._monkeypatch = monkeypatch

    def add(self, name: str, measure: Callable[[], Iterable[Row]]) -> None:
        module = ModuleType(f"measurement_{name}")
        module.measure = measure  # type: ignore[attr-defined]
        self._monkeypatch.setitem(sys.modules, module.__name__, module)
        self[name] = (f"About {name}", module.__name__)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Measurements:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    return Measurements(monkeypatch)


def kept() -> list[Row]:
    return [Row(what="x", value=1.0, limit=2.0)]


def broken() -> list[Row]:
    return [Row(what="x", value=3.0, limit=2.0)]


def late() -> list[Row]:
    raise TimeoutError("nobody came")


def test_kept_promises_give_zero(made_up: Measurements, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.add("good", kept)
    assert bench.main([], made_up) == 0
    assert "About good" in capsys.readouterr().out


def test_a_broken_promise_gives_one_and_the_rest_is_measured(
    made_up: Measurements, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up.add("bad", broken)
    made_up.add("none", late)
    made_up.add("good", kept)
    assert bench.main(["--json"], made_up) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told] == ["bad", "none", "good"]
    assert told[0]["rows"][0]["value"] == 3.0
    assert told[1]["failure"] == "TimeoutError: nobody came"


def test_rows_are_shown_as_soon_as_they_are_measured(
    made_up: Measurements, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure() -> Iterator[Row]:
        yield Row(what="first", value=3.0, unit="ms", limit=2.0)
        assert "first: 3 ms ≤ 2 NO" in capsys.readouterr().err
        raise TimeoutError("nobody came")

    made_up.add("some", measure)
    assert bench.main(["--json"], made_up) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert told["failure"] == "TimeoutError: nobody came"
    assert [row["what"] for row in told["rows"]] == ["first"]


def test_only_what_is_named_is_measured(made_up: Measurements, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.add("bad", broken)
    made_up.add("good", kept)
    assert bench.main(["--only", "good"], made_up) == 0
    assert "About bad" not in capsys.readouterr().out


def test_an_unknown_name_is_refused(made_up: Measurements) -> None:
    made_up.add("good", kept)
    with pytest.raises(SystemExit):
        bench.main(["--only", "nonsense"], made_up)


def test_the_numbers_go_into_the_document(made_up: Measurements, tmp_path: Path) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text("<!-- begin good --><!-- end good -->", encoding="utf-8")
    readme = tmp_path / "README.md"
    marks = "<!-- begin ratios --><!-- end ratios --> <!-- begin gains --><!-- end gains -->"
    readme.write_text(marks, encoding="utf-8")
    slow = tmp_path / "slow-networks.md"
    slow.write_text("<!-- begin gains --><!-- end gains -->", encoding="utf-8")
    gained = Row(what="net: exact at 240 Mbit, times alone", value=0.5)
    made_up.add("good", lambda: [*kept(), Row(what="x ÷ y", value=1.0, limit=2.0), gained])
    assert bench.main(["--write-docs"], made_up, document, readme) == 0
    assert "| x | 1 | ≤ 2 | yes |  |" in document.read_text(encoding="utf-8")
    short = readme.read_text(encoding="utf-8")
    assert "|  | x ÷ y | 1 | ≤ 2 | yes |" in short
    assert "| x |" not in short
    for page in (short, slow.read_text(encoding="utf-8")):
        assert "| net | 0.50 |" in page
