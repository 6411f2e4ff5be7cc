"""A notebook trained by two real members: the weights of one process that runs its cells unchanged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.core.script.notebooks import notebook
from tests.core.trainer.attended import Attended, cluster, keys_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

CELLS = (
    "#md # A small one",
    "import keras\nimport numpy as np\nimport tensorflow as tf\nkeras.utils.set_random_seed(7)",
    "def brighten(x, y):\n    # AutoGraph reads this cell's source.\n    if tf.reduce_sum(x) > 0:\n"
    "        x = 2 * x\n    return x, y\n\n"
    "draw = np.random.default_rng(5)\nx, y = draw.normal(size=(320, 8)), draw.integers(3, size=320)\n"
    "data = tf.data.Dataset.from_tensor_slices((x.astype('float32'), y)).map(brighten).batch(64)",
    "model = keras.Sequential([keras.layers.Dense(16, 'relu'), keras.layers.Dense(3)])\n"
    "model.compile('adam', keras.losses.SparseCategoricalCrossentropy(from_logits=True))",
    "model.fit(data, epochs=4, verbose=0)",
    "np.savez('weights.npz', *model.get_weights())\nNone",
)
MAGICS = ("%matplotlib inline\n!pip install pandas", "%%time\npass", "import os\nos.path.exists('x') or 1")


async def test_a_notebook_over_two_members_is_exact(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "train.py").write_text("\n".join(CELLS[1:]))
    command = [sys.executable, "train.py"]
    await asyncio.to_thread(subprocess.run, command, cwd=plain, check=True, capture_output=True)

    keys, trainers = keys_for(2), []
    for rank, (task, config) in enumerate(cluster(chief=1, worker=1).items()):
        folder = tmp_path / task
        folder.mkdir()
        (folder / "train.ipynb").write_text(notebook(*MAGICS, *CELLS))
        trainers.append(
            Attended(
                tmp_path / f"{rank}.log",
                task=task,
                folder=str(folder),
                script="train.ipynb",
                tf_config=config,
                rank=rank,
                shares=(48, 16),
                exchange=keys[rank],
            )
        )
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers))
    assert [exit.reason for exit in exits] == ["finished", "finished"], exits
    assert exits[0].shared and exits[0].weights_sha256 == exits[1].weights_sha256 != ""
    alone, *members = (
        list(np.load(tmp_path / who / "weights.npz").values()) for who in ("plain", "chief:0", "worker:0")
    )
    for together in members:
        apart = max(float(np.abs(a - b).max()) for a, b in zip(alone, together, strict=True))
        assert apart <= 2e-6


async def test_an_error_in_a_cell_ends_the_run_with_cell_and_line(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_text(
        notebook("import keras", "x = 1\n\nraise KeyError('no such column')")
    )
    trainer = Attended(tmp_path / "log", folder=str(tmp_path), script="train.ipynb")
    problem = (await trainer.exit()).problem
    assert problem is not None and problem.code == "script-error"
    assert "KeyError: 'no such column' (train.ipynb, cell 2, line 3)" in problem.what
    assert 'File "train.ipynb, cell 2", line 3' in problem.detail
    assert "raise KeyError('no such column')" in problem.detail
