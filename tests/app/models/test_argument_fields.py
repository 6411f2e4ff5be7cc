"""Fields for a script's options, and the arguments that they stand for."""

from __future__ import annotations

import pytest

from app.models.argument_fields import ON, changed, fields, value_of
from core.vocabulary.answers import Declared

EPOCHS = Declared(names=("-e", "--epochs"), kind="int", default="5", help="How long to train")
KIND = Declared(names=("--kind",), choices=("relu", "tanh"))
FAST = Declared(names=("--fast",), takes=False, switch=True)
LAYERS = Declared(names=("--layers",), takes=False)
ALL = (EPOCHS, KIND, FAST, LAYERS)


def shown(text: str, *, several: bool = False) -> list[tuple[str, str, str]]:
    return [(each.title, each.value, each.wrong) for each in fields(ALL, text, several=several)]


def test_each_option_is_a_field_with_its_value_and_meaning() -> None:
    assert shown("--fast -e 7 data.csv") == [("epochs", "7", ""), ("kind", "", ""), ("fast", ON, "")]
    assert fields(ALL, "", several=False)[0].meaning == "-e, --epochs: How long to train Default: 5."


def test_a_wrong_value_says_so_in_its_field() -> None:
    epochs, kind, _ = shown("--epochs=ten --kind gelu")
    assert epochs[2] == "--epochs must be a whole number, not ten."
    assert kind[2] == "--kind must be one of relu, tanh, not gelu."


def test_each_of_several_values_counts() -> None:
    assert shown("--epochs 3,5", several=True)[0] == ("epochs", "3,5", "")
    assert shown("--epochs 3,x", several=True)[0][2] == "--epochs must be a whole number, not x."
    assert shown("--epochs 3,5")[0][2] == "--epochs must be a whole number, not 3,5."
    assert shown("--epochs 3,,5", several=True)[0][2] == ""


@pytest.mark.parametrize(
    ("text", "option", "value", "after"),
    [
        ("", EPOCHS, "7", "--epochs 7"),
        ("data.csv", KIND, "relu", "data.csv --kind relu"),
        ("-e 3 --fast", EPOCHS, "4", "--epochs 4 --fast"),
        ("--epochs=3 data.csv -e 4", EPOCHS, "5", "--epochs 5 data.csv"),
        ("-e 3 --fast", EPOCHS, "", "--fast"),
        ("--epochs", EPOCHS, "2", "--epochs 2"),
        ("--kind relu", FAST, ON, "--kind relu --fast"),
        ("--fast --kind relu", FAST, "", "--kind relu"),
        ("-- --fast", FAST, ON, "--fast -- --fast"),
        ("", EPOCHS, "-1", "--epochs=-1"),
        ("", KIND, "two words", "--kind 'two words'"),
        ("--kind 'open", EPOCHS, "7", "--kind 'open"),
    ],
)
def test_a_field_writes_into_the_arguments(text: str, option: Declared, value: str, after: str) -> None:
    assert changed(text, option, value) == after


DATA, SIZE = Declared(names=("data",), required=True), Declared(names=("size",), kind="int", required=True)
PLACED = (DATA, SIZE, EPOCHS, FAST)


def test_positional_arguments_are_fields_in_their_order() -> None:
    found = [(each.title, each.value, each.usable) for each in fields(PLACED, "--fast", several=False)[:2]]
    assert found == [("data", "", True), ("size", "", False)], "the second one would be the first"
    data, size, *_ = fields(PLACED, "--epochs 3 x.csv --fast two", several=False)
    assert (data.value, size.value, size.wrong) == ("x.csv", "two", "size must be a whole number, not two.")
    assert [each.title for each in fields(PLACED, "--unknown 3", several=False)] == ["epochs", "fast"]


@pytest.mark.parametrize(
    ("text", "option", "value", "after"),
    [
        ("--epochs 3", DATA, "x.csv", "x.csv --epochs 3"),
        ("x.csv --epochs 3", SIZE, "7", "x.csv 7 --epochs 3"),
        ("--epochs 3 x.csv 7", DATA, "y.csv", "--epochs 3 y.csv 7"),
        ("x.csv 7 --fast", SIZE, "", "x.csv --fast"),
        ("x.csv", EPOCHS, "2", "x.csv --epochs 2"),
    ],
)
def test_a_field_writes_a_positional_argument(text: str, option: Declared, value: str, after: str) -> None:
    assert changed(text, option, value, PLACED) == after


def test_an_option_that_is_not_given_has_its_default() -> None:
    assert value_of(("--fast",), EPOCHS) == "5"
    assert value_of(("--epochs", "3", "-e=4"), EPOCHS) == "4"
