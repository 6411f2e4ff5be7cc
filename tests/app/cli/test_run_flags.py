"""Each option of a run has a flag that changes that option and no other."""

import argparse

import pytest
from msgspec.structs import replace

from app.cli import run_flags
from core.vocabulary.options import RunOptions
from tests.core.samples import unlike_default


def given(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for flag in run_flags.flags():
        flag.add_to(parser)
    return parser.parse_args(words)


def words_for(name: str, value: object) -> tuple[str, ...]:
    flag = run_flags.FLAGS[name][0]
    match value:
        case bool():
            return (flag if value else flag.replace("--", "--no-"),)
        case float():
            return flag, str(value / 60)
    return flag, str(value)


@pytest.mark.parametrize("name", [name for name in run_flags.FLAGS if name != "away_s"])
def test_a_flag_changes_its_option_alone(name: str) -> None:
    value = getattr(unlike_default(RunOptions), name)
    chosen = run_flags.options_of(given(*words_for(name, value)), RunOptions())
    assert chosen == replace(RunOptions(), **{name: value}) != RunOptions()


def test_one_flag_says_how_long_a_run_waits_whether_it_could_go_on_or_not() -> None:
    chosen = run_flags.options_of(given("--wait-for-away", "2"), RunOptions())
    assert chosen == replace(RunOptions(), away_s=120.0, go_on_s=120.0)
    assert {*run_flags.FLAGS, "go_on_s"} == set(RunOptions.__struct_fields__)


def test_what_is_not_given_stays_as_it_was_then() -> None:
    then = unlike_default(RunOptions)
    assert run_flags.options_of(given(), then) == then
    assert run_flags.options_of(given("--wire", "f32"), then) == replace(then, wire="f32")


def test_minutes_that_are_none_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--wait-for-away", "soon")
    assert "invalid minutes value: 'soon'" in capsys.readouterr().err


def test_fewer_than_no_minutes_are_named_in_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--wait-for-away", "-3")
    assert "-3 minutes is not a valid wait: give 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["rare=7", "rare=65", "rare=016", "rare=", "often", "RARE", "rare=16\n"])
def test_meetings_that_are_none_are_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--sync", text)
    assert "write exact, rare, or rare=N with N from 8 to 64, not" in capsys.readouterr().err
