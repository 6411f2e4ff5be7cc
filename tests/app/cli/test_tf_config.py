from app.cli import tf_config
from core.vocabulary.answers import PlanMade
from tests.app.cli.scripted_node import ME, OTHER, ScriptedNode, Words, follower, paired, plan
from tests.app.words.test_advice_words import ADVICE


async def test_each_members_tf_config_is_shown_exactly() -> None:
    node, screen = ScriptedNode(), Words()
    node.happen(paired())
    made = PlanMade(
        plan=plan(OTHER),
        tf_configs={f"{ME}/chief:0": '{"cluster": 1}', f"{OTHER}/worker:0": '{"cluster": 2}'},
        expectation="Last time on these laptops: no faster than here alone.",
        advice=ADVICE,
    )
    with follower(node) as events:
        tf_config._show(made, events, screen)
    assert screen.said.splitlines() == [
        "chief:0 on here:",
        '{"cluster": 1}',
        "worker:0 on other:",
        '{"cluster": 2}',
        "Last time on these laptops: no faster than here alone.",
        "Use a cable, a faster network or a larger batch_size (twice the rows: about 1.2× as fast). Or send "
        "half the bytes (--wire bf16: only 5 % faster) or meet rarely (--sync rare: about 1.5× as fast); the "
        "result is then not that of one machine. Or train on anna alone (--solo).",
    ]


async def test_one_device_alone_gets_none() -> None:
    node, screen = ScriptedNode(), Words()
    with follower(node) as events:
        tf_config._show(PlanMade(plan=plan()), events, screen)
    assert screen.said == "here alone: one process, no cluster, no TF_CONFIG.\n"
