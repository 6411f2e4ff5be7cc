from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.phases import Finished
from tests.lab.lab import Lab, find, pair
from tests.lab.laptops import EXAMPLE, digits, weights

EPOCHS = 6
SEED = 7
SHARES = (48, 16)
OFTEN = {"TANDEM_KEEP_EVERY_S": "0.2"}
"""Environment of a job that is ended early: a few seconds of training are not always saved."""


@pytest.fixture(scope="package")
def two_laptops(namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the weights with which two laptops end by ``tandem run``."""
    with Lab(tmp_path_factory.mktemp("laptops"), hosts=2) as lab:
        anna, ben = lab.agent(0), lab.agent(1)
        pair(anna, ben, find(anna, ben))
        ben.do(SetCodePolicy(device=anna.device, policy="always"))
        spec = digits(lab.folder / "digits", "--epochs", str(EPOCHS), others=(ben,))
        shares = dict(zip((anna.device, ben.device), SHARES, strict=True))
        run = anna.train(replace(spec, seed=SEED, shares=shares))
        assert anna.ends(run) == Finished()
        assert anna.run().plan.chief.device == anna.device
        (digest,) = set(weights(anna).values())
    return digest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The unmodified shipped example, in a folder whose name a shell would split."""
    folder = tmp_path / "my digits"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.keras"))
    return folder
