import numpy as np
import pytest

from ldfm import LDFM
from models import random_weights, values_of


def test_a_forest_of_one_row(tmp_path):
    weights = random_weights((2, 3, 2), 0)
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values_of((2, 3, 2)))
    row = {"x0": ["v1"], "x1": ["v2"], "x2": ["v0"]}
    ax = model.plot_forest(row, threshold=0.1)
    assert {text.get_text() for text in ax.texts} == {"x0 = v1", "x1 = v2", "x2 = v0"}
    assert len(ax.patches) == int((model.arc_marginals(row)[0][1:] >= 0.1).sum())
    ax.figure.savefig(tmp_path / "forest.png")
    with pytest.raises(ValueError, match="draws one row, the table has 2"):
        model.plot_forest({name: cells * 2 for name, cells in row.items()})


def test_labels_stay_inside_the_picture():
    cardinalities = (2,) * 30
    weights = random_weights(cardinalities, 1)
    values = {f"a rather long variable name {i}": ["first value", "second value"] for i in range(30)}
    model = LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values)
    ax = model.plot_forest({name: ["second value"] for name in values})
    ax.figure.canvas.draw()
    picture = ax.figure.bbox
    boxes = [text.get_window_extent() for text in [*ax.texts, ax.title]]
    for box in boxes:
        assert box.x0 >= picture.x0
        assert box.x1 <= picture.x1
        assert box.y0 >= picture.y0
        assert box.y1 <= picture.y1
    title = ax.title.get_window_extent()
    assert not any(title.overlaps(box) for box in boxes[:-1])
    assert np.isfinite(title.x0)
