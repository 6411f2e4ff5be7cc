"""Notebooks as Jupyter saves them, for tests."""

from __future__ import annotations

import json


def notebook(*cells: str, language: str = "python", outputs: int = 0) -> str:
    """Each cell is code, or Markdown after ``#md``. ``outputs``: size in bytes of each cell's picture
    output."""
    picture = {"data": {"image/png": "A" * outputs}, "metadata": {}, "output_type": "display_data"}
    written: list[dict[str, object]] = [
        {"cell_type": "markdown", "metadata": {}, "source": cell.splitlines(keepends=True)}
        if cell.startswith("#md")
        else {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [picture] if outputs else [],
            "source": cell.splitlines(keepends=True),
        }
        for cell in cells
    ]
    return json.dumps(
        {
            "cells": written,
            "metadata": {
                "kernelspec": {"display_name": "Python 3", "language": language, "name": "python3"},
                "language_info": {"name": language, "version": "3.11.7"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
