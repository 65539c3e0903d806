"""The notebooks of examples/ run, on the reports of the checkout."""

import json

import matplotlib
import pytest

from albert_lab import paths

NOTEBOOKS = sorted((paths.PACKAGE.parent / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_the_cells_of_a_notebook_run_from_top_to_bottom(notebook, monkeypatch):
    monkeypatch.chdir(notebook.parent)
    monkeypatch.setitem(matplotlib.rcParams, "backend", "agg")
    cells = [
        cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    namespace = {}
    for cell in cells:
        exec("".join(cell["source"]), namespace)
        assert cell["execution_count"], "it is committed with its output"
    assert len(cells) > 3
