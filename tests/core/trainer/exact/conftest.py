"""TensorFlow for tests of the engine. Importing it takes seconds, so no test's module does."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def tf() -> Any:
    import tensorflow

    return tensorflow
