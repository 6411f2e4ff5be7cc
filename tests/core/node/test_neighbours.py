"""What people see of a pairing."""

from core.net.address import Address
from core.node.neighbours import node_event
from core.pairing.state import Began, CodeShown, Failed, Paired, SaidSame
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from tests.core.fake_node import OTHER

PROBLEM = Problem(code="different", what="The codes differ.")


def test_each_step_is_told() -> None:
    assert node_event(Began(True, "other", "10.0.0.2", OTHER)) == ev.PairingBegan(
        incoming=True, name="other", address="10.0.0.2", device=OTHER
    )
    assert node_event(CodeShown(OTHER, "other", "408 355", PROBLEM)) == ev.PairingCodeShown(
        device=OTHER, name="other", code="408 355", warning=PROBLEM
    )
    assert node_event(SaidSame()) == ev.PairingAnswered()
    assert node_event(Failed(OTHER, PROBLEM)) == ev.PairingEnded(device=OTHER, problem=PROBLEM)


def test_a_pair_is_not_told_before_it_is_kept() -> None:
    assert node_event(Paired(OTHER, b"", "other", Address("10.0.0.2"))) is None
