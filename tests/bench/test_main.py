"""``python -m bench``: what it runs, prints and returns, with measurements that take no time."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench import __main__ as bench
from bench.result import Row

Register = Callable[[str, Callable[[], list[Row]]], None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Puts a measurement in the place of all others."""
    monkeypatch.setattr(bench, "MEASUREMENTS", {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")

    def add(name: str, measure: Callable[[], list[Row]]) -> None:
        module = ModuleType(f"measurement_{name}")
        module.measure = measure  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        bench.MEASUREMENTS[name] = (f"About {name}", module.__name__)

    return add


def kept() -> list[Row]:
    return [Row(what="x", value=1.0, limit=2.0)]


def broken() -> list[Row]:
    return [Row(what="x", value=3.0, limit=2.0)]


def late() -> list[Row]:
    raise TimeoutError("nobody came")


def test_kept_promises_give_zero(register: Register, capsys: pytest.CaptureFixture[str]) -> None:
    register("good", kept)
    assert bench.main([]) == 0
    assert "About good" in capsys.readouterr().out


def test_a_broken_promise_gives_one_and_the_rest_is_measured(
    register: Register, capsys: pytest.CaptureFixture[str]
) -> None:
    register("bad", broken)
    register("none", late)
    register("good", kept)
    assert bench.main(["--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told] == ["bad", "none", "good"]
    assert told[0]["rows"][0]["value"] == 3.0
    assert told[1]["failure"] == "TimeoutError: nobody came"


def test_only_what_is_named_is_measured(register: Register, capsys: pytest.CaptureFixture[str]) -> None:
    register("bad", broken)
    register("good", kept)
    assert bench.main(["--only", "good"]) == 0
    assert "About bad" not in capsys.readouterr().out


def test_an_unknown_name_is_refused(register: Register) -> None:
    register("good", kept)
    with pytest.raises(SystemExit):
        bench.main(["--only", "nonsense"])


def test_the_numbers_go_into_the_document(
    register: Register, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = tmp_path / "benchmarks.md"
    document.write_text("<!-- begin good --><!-- end good -->", encoding="utf-8")
    readme = tmp_path / "README.md"
    readme.write_text("<!-- begin ratios --><!-- end ratios -->", encoding="utf-8")
    monkeypatch.setattr(bench, "DOCUMENT", document)
    monkeypatch.setattr(bench, "README", readme)
    register("good", lambda: [*kept(), Row(what="x ÷ y", value=1.0, limit=2.0)])
    assert bench.main(["--write-docs"]) == 0
    assert "| x | 1 | ≤ 2 | yes |  |" in document.read_text(encoding="utf-8")
    short = readme.read_text(encoding="utf-8")
    assert "|  | x ÷ y | 1 | ≤ 2 | yes |" in short
    assert "| x |" not in short
