"""How rounds with one receiver and with two become rows."""

from bench import transfer_chain
from bench.transfer_chain import MOST_SENT, MOST_TIME


def test_a_chain_sends_a_project_about_once_and_takes_about_as_long_as_one_receiver() -> None:
    sent, time = transfer_chain.rows([1.02, 2.1, 1.03], [1.1, 1.0, 2.0])
    assert (sent.value, sent.kept, time.value, time.kept) == (1.03, True, 1.1, True)
    assert [row.kept for row in transfer_chain.rows([2.05], [2.0])] == [False, False]
    assert (MOST_SENT, MOST_TIME) == (1.1, 1.2)
