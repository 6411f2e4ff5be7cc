"""Lookalike names are reported; ordinary names are not."""

from __future__ import annotations

import pytest

from core.vocabulary.lookalikes import alphabets, caution, skeleton

CYRILLIC_A = "\u0430"


@pytest.mark.parametrize(
    "name", [f"{CYRILLIC_A}nna", "ANNA", "\uff41nna", f"{CYRILLIC_A}nn{CYRILLIC_A}", "an\u200bna", " anna "]
)
def test_names_that_look_the_same_have_one_skeleton(name: str) -> None:
    assert skeleton(name) == skeleton("anna")


@pytest.mark.parametrize(("one", "two"), [("laptop-1", "laptop-l"), ("B0B", "bob"), ("\u0392en", "ben")])
def test_digits_and_other_alphabets_pass_for_letters(one: str, two: str) -> None:
    assert skeleton(one) == skeleton(two)


@pytest.mark.parametrize(("one", "two"), [("anna", "ben"), ("laptop-1", "laptop-2"), ("J\u00f6rg", "Jorg")])
def test_names_that_a_reader_tells_apart_differ(one: str, two: str) -> None:
    assert skeleton(one) != skeleton(two)


def test_a_word_of_several_alphabets_is_reported() -> None:
    assert alphabets(f"{CYRILLIC_A}nna") == ("Cyrillic", "Latin")
    assert alphabets("my \u0392en") == ("Greek", "Latin")


@pytest.mark.parametrize(
    "name",
    [
        "anna's laptop",
        "J\u00f6rg-2",
        "\u041d\u043e\u0443\u0442\u0431\u0443\u043a Lenovo",
        "\u041c\u0430\u0440\u02bc\u044f\u043d\u0430",
        "\u6771\u4eac\u30bf\u30ef\u30fcPC",
        "\uae40\uc758 PC",
        "\U0001f4bb anna",
    ],
)
def test_ordinary_names_are_not_reported(name: str) -> None:
    assert alphabets(name) == () and caution(name, ("ben",)) == ""


def test_a_lookalike_of_another_laptop_is_reported_with_its_name() -> None:
    name = f"{CYRILLIC_A}nna"
    assert "looks like the name of another laptop here, anna." in caution(name, ("ben", "anna"))
    assert "mixes letters of different alphabets: Cyrillic and Latin." in caution(name, ("ben",))
