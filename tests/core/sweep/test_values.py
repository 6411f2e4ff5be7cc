import pytest

from core.sweep.values import argument_sets, combinations
from core.vocabulary.errors import TandemError


def test_every_combination_is_a_set_and_the_last_varies_fastest() -> None:
    words = ("--lr", "0.1,0.01", "--layers=2,4", "data.csv")
    assert argument_sets(words) == (
        ("--lr", "0.1", "--layers=2", "data.csv"),
        ("--lr", "0.1", "--layers=4", "data.csv"),
        ("--lr", "0.01", "--layers=2", "data.csv"),
        ("--lr", "0.01", "--layers=4", "data.csv"),
    )


def test_an_escaped_comma_belongs_to_the_value_and_a_value_counts_once() -> None:
    assert argument_sets(("--units", r"64\,32,16,16")) == (("--units", "64,32"), ("--units", "16"))
    assert argument_sets(()) == ((),)


def test_negative_numbers_are_values() -> None:
    assert argument_sets(("--shift", "-1,0,.5")) == (("--shift", "-1"), ("--shift", "0"), ("--shift", ".5"))
    assert argument_sets(("-1,1",)) == (("-1",), ("1",))


def test_a_random_choice_has_no_set_twice_and_never_builds_the_grid() -> None:
    words = tuple(word for name in "abcdefghij" for word in (f"--{name}", ",".join(map(str, range(100)))))
    drawn = argument_sets(words, at_random=20)
    assert len(set(drawn)) == 20
    assert all(each[::2] == words[::2] for each in drawn)
    assert set(argument_sets(("--lr", "1,2"), at_random=20)) == {("--lr", "1"), ("--lr", "2")}


@pytest.mark.parametrize("words", [("--lr", "1,,2"), ("--lr", "1,"), ("--a", ",".join(map(str, range(257))))])
def test_empty_values_and_too_many_sets_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(TandemError, match="value"):
        argument_sets(words)


def test_the_same_draw_gives_the_same_sets() -> None:
    words = ("--lr", ",".join(map(str, range(200))))
    first, again, other = (argument_sets(words, 9, draw=draw) for draw in (1, 1, 2))
    assert first == again != other
    assert combinations(words) == 200


def test_a_random_choice_of_none_is_refused() -> None:
    with pytest.raises(TandemError, match="0 sets"):
        argument_sets(("--lr", "1,2"), at_random=0)
