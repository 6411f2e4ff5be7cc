"""A failure is one sentence on what happened and one on how to fix it."""

from core.vocabulary.errors import Problem, TandemError


def test_a_problem_reads_as_its_sentence_and_its_fix_if_any() -> None:
    assert str(Problem(code="a", what="It broke.", fix="Mend it.")) == "It broke. Mend it."
    assert str(Problem(code="a", what="It broke.")) == "It broke."


def test_an_error_has_the_texts_of_its_problem() -> None:
    problem = Problem(code="a", what="It broke.", fix="Mend it.", detail="line 3")
    error = TandemError.of(problem)
    assert error.problem == problem
    assert (error.code, error.what, error.fix) == ("a", "It broke.", "Mend it.")
    assert str(error) == "It broke. Mend it."
    assert error.args == ("It broke.",)
