import numpy as np
import pytest

from ldfm import LDFM
from ldfm.plots import plot_marginals
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


def model_of(cardinalities, seed, name="x"):
    weights = random_weights(cardinalities, seed)
    values = {f"{name}{i}": [f"v{c}" for c in range(k)] for i, k in enumerate(cardinalities)}
    return LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values)


def test_a_forest_of_an_incomplete_row():
    model = model_of((2, 3, 2), 0)
    ax = model.plot_forest({"x0": ["v1"], "x1": [None], "x2": ["v0"]})
    assert {text.get_text() for text in ax.texts} == {"x0 = v1", "x1 = ?", "x2 = v0"}


def test_posteriors_of_the_unknown_cells_of_a_row():
    model = model_of((2, 3, 2), 0)
    row = {"x0": ["v1"], "x1": [None], "x2": [None]}
    ax = model.plot_marginals(row)
    answer = model.marginals(row)
    texts = [text.get_text() for text in ax.texts]
    numbers = [f"{share:.3f}" for name in ("x1", "x2") for share in answer.probabilities[name][0]]
    assert [text for text in texts if text.startswith(("0.", "1."))] == numbers
    assert [text for text in texts if text.startswith("x")] == ["x1", "x2"]
    with pytest.raises(ValueError, match="no unknown cell"):
        model.plot_marginals({"x0": ["v1"], "x1": ["v0"], "x2": ["v0"]})
    with pytest.raises(ValueError, match="draws one row, the table has 2"):
        model.plot_marginals({name: cells * 2 for name, cells in row.items()})


@pytest.mark.parametrize(("variables", "name"), [(3, "x"), (40, "a rather long name of a variable ")])
def test_labels_of_posteriors_do_not_overlap(variables, name):
    names = [f"{name}{i}" for i in range(variables)]
    numbers = {key: np.array([0.25, 0.25, 0.5]) for key in names}
    errors = {key: np.full(3, 0.01 if variables > 8 else 0.0) for key in names}
    ax = plot_marginals({key: ["no", "yes", "a value that is long"] for key in names}, numbers, errors)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in [*ax.texts, ax.title]]
    picture = ax.figure.bbox
    for place, box in enumerate(boxes):
        assert box.x0 >= picture.x0
        assert box.x1 <= picture.x1
        assert not any(box.overlaps(other) for other in boxes[:place])
    assert bool(ax.lines) == (variables > 8)


def test_histories_of_both_objectives():
    rows = {"a": ["x", "y"] * 60, "b": ["x", "x", "y", "y"] * 30}
    for objective, most in (("generation", 5), ("likelihood", 60)):
        model = LDFM(objective=objective, max_iter=most, random_state=0, validation_fraction=0.2).fit(rows)
        ax = model.plot_history()
        ax.figure.canvas.draw()
        trained, held_out = ax.lines
        assert trained.get_ydata().tolist() == model.history_.objective.tolist()
        assert held_out.get_ydata().tolist() == model.history_.validation.tolist()
        assert ax.yaxis.label.get_window_extent().y1 <= ax.figure.bbox.y1
    with pytest.raises(ValueError, match="no record of a fit"):
        model_of((2, 2), 0).plot_history()


def test_pictures_on_given_axes():
    from matplotlib.figure import Figure

    model = model_of((2, 3, 2), 0)
    first, second = Figure().subplots(1, 2)
    row = {"x0": ["v1"], "x1": [None], "x2": [None]}
    assert model.plot_forest(row, ax=first) is first
    assert model.plot_marginals(row, ax=second) is second
