import numpy as np
import pytest
from matplotlib.colors import to_rgb

from ldfm import LDFM
from ldfm.plots import plot_marginals
from ldfm.plots.style import ARC, OTHER, shortened
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


def model_of(cardinalities, seed, name="x"):
    weights = random_weights(cardinalities, seed)
    values = {f"{name}{i}": [f"v{c}" for c in range(k)] for i, k in enumerate(cardinalities)}
    return LDFM.from_weights(weights.root, weights.arcs, weights.stop, values=values)


def boxes_of(ax):
    """Give corners in pixels of labels, turned as they are, and of title and legend."""
    from matplotlib.transforms import Bbox

    ax.figure.canvas.draw()
    found = []
    for text in ax.texts:
        angle = np.radians(text.get_rotation())
        text.set_rotation(0)
        flat = text.get_window_extent()
        text.set_rotation(np.degrees(angle))
        x, y = text.get_transform().transform((0, 0)) if not hasattr(text, "xy") else anchor_of(text)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        corners = np.array([[flat.x0, flat.y0], [flat.x1, flat.y0], [flat.x1, flat.y1], [flat.x0, flat.y1]])
        found.append((corners - (x, y)) @ turn.T + (x, y))
    legend = [] if ax.get_legend() is None else [ax.get_legend().get_window_extent()]
    for box in [ax.title.get_window_extent(), *legend]:
        assert isinstance(box, Bbox)
        found.append(np.array([[box.x0, box.y0], [box.x1, box.y0], [box.x1, box.y1], [box.x0, box.y1]]))
    return found


def anchor_of(annotation):
    """Give where an annotation's text is fixed, in pixels."""
    points = np.array(annotation.xyann) * annotation.figure.dpi / 72
    return annotation.axes.transData.transform(annotation.xy) + points


def apart(first, second):
    """Whether a line parts two convex shapes (the separating axis theorem)."""
    for shape in (first, second):
        for start, end in zip(shape, np.roll(shape, -1, axis=0), strict=True):
            across = np.array([start[1] - end[1], end[0] - start[0]])
            if (first @ across).max() <= (second @ across).min() or (second @ across).max() <= (first @ across).min():
                return True
    return False


def assert_readable(ax):
    shapes = boxes_of(ax)
    picture = ax.figure.bbox
    for place, shape in enumerate(shapes):
        assert shape.min() >= -1
        assert (shape <= [picture.x1 + 1, picture.y1 + 1]).all()
        assert all(apart(shape, other) for other in shapes[:place])


def test_shapes_are_told_apart():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=float)
    diamond = np.array([[1.6, 0.5], [2.1, 1.0], [1.6, 1.5], [1.1, 1.0]])
    assert apart(square, diamond)
    assert not apart(square, diamond - 0.4)


@pytest.mark.parametrize(
    ("variables", "name"), [(3, "x"), (3, "a rather long variable name $"), (37, "a rather long variable name $")]
)
def test_labels_title_and_legend_do_not_overlap(variables, name):
    model = model_of((2,) * variables, 0, name)
    row, other = ({f"{name}{i}": [value] for i in range(variables)} for value in ("v0", "v1"))
    assert_readable(model.plot_forest(row, threshold=0.2))
    assert_readable(model.plot_contrast(row, other, threshold=0.2))


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
    first, second = Figure().subplots(1, 2)
    assert model.plot_contrast(row, {"x0": ["v0"], "x1": [None], "x2": [None]}, ax=first) is first
    assert model.plot_overview(row, ax=second) is second
    first.figure.canvas.draw()


def test_a_contrast_of_two_rows_draws_what_differs():
    model = model_of((2, 3, 2), 0)
    row, other = {"x0": ["v1"], "x1": ["v2"], "x2": ["v0"]}, {"x0": ["v1"], "x1": ["v0"], "x2": [None]}
    first, second = model.arc_marginals(row)[0], model.arc_marginals(other)[0]
    change = second[1:] - first[1:]
    ax = model.plot_contrast(row, other, threshold=0.02)
    assert {text.get_text() for text in ax.texts} == {"x0 = v1", "x1 = v2 | v0", "x2 = v0 | ?"}
    assert {text.get_text() for text in ax.texts if text.get_weight() == "bold"} == {"x1 = v2 | v0", "x2 = v0 | ?"}
    colours = [patch.get_edgecolor()[:3] for patch in ax.patches]
    for colour, expected in ((ARC, change <= -0.02), (OTHER, change >= 0.02)):
        assert sum(np.allclose(seen, to_rgb(colour)) for seen in colours) == expected.sum() > 0
    same = (np.abs(change) < 0.02) & (np.minimum(first[1:], second[1:]) >= 0.02)
    assert len(colours) == (np.abs(change) >= 0.02).sum() + same.sum()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    most = f"this wide: {np.abs(change).max():.2f} more probable where"
    assert texts[:2] == [f"{most} x1 = v2, x2 = v0", f"{most} x1 = v0"]
    with pytest.raises(ValueError, match="plot_contrast draws one row, the table has 2"):
        model.plot_contrast(row, {name: cells * 2 for name, cells in row.items()})


def test_an_overview_averages_over_rows():
    model = model_of((2, 3, 2), 0)
    rows = {"x0": ["v1", "v0"], "x1": ["v2", "v0"], "x2": ["v0", "v1"]}
    mean = model.arc_marginals(rows).mean(axis=0)
    ax = model.plot_overview(rows)
    children = [label.get_text() for label in ax.get_xticklabels()]
    parents = [label.get_text() for label in ax.get_yticklabels()]
    assert parents == ["(root)", *children]
    order = [int(child.removeprefix("x")) for child in children]
    assert sorted(order) == [0, 1, 2]
    drawn = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(drawn, mean[[0, *(1 + i for i in order)]][:, order])
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)
    assert_readable(ax)
    with pytest.raises(ValueError, match="no rows"):
        model.plot_overview({name: [] for name in rows})


def test_an_overview_of_the_model_is_that_of_its_draws():
    model = model_of((2, 3, 2), 0)
    everything = [{"x0": a, "x1": b, "x2": c} for a in ("v0", "v1") for b in ("v0", "v1", "v2") for c in ("v0", "v1")]
    table = {name: [row[name] for row in everything] for name in ("x0", "x1", "x2")}
    expected = np.tensordot(np.exp(model.score_samples(table)), model.arc_marginals(table), axes=1)
    spread = model.arc_marginals(table).std(axis=0).max()
    ax = model.plot_overview()
    order = [int(label.get_text().removeprefix("x")) for label in ax.get_xticklabels()]
    drawn = np.asarray(ax.images[0].get_array())
    # 5 standard errors: a false alarm in a million a cell
    bound = 5 * spread / np.sqrt(len(model.draws_))
    np.testing.assert_allclose(drawn, expected[[0, *(1 + i for i in order)]][:, order], rtol=0, atol=bound)


def test_an_overview_of_incomplete_rows_and_many_variables():
    model = model_of((2,) * 20, 3, "variable ")
    ax = model.plot_overview({f"variable {i}": ["v0", None, "v1"] for i in range(20)})
    assert not ax.texts
    ax.figure.canvas.draw()
    labels = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert not any(a.overlaps(b) for i, a in enumerate(labels) for b in labels[:i])


@pytest.mark.parametrize("variables", [1, 2])
def test_pictures_of_very_few_variables(variables):
    model = model_of((2,) * variables, 0)
    row, other = ({f"x{i}": [value] for i in range(variables)} for value in ("v0", "v1"))
    ax = model.plot_forest(row, threshold=0)
    assert len(ax.patches) == variables * (
        variables - 1
    )  # also of arcs with no threshold, none leads from a variable to itself
    assert_readable(ax)
    assert_readable(model.plot_contrast(row, other, threshold=0))
    assert_readable(model.plot_overview(row))


def test_long_names_that_begin_alike_can_be_told_apart():
    names = [f"How satisfied are you with the {what}" for what in ("price", "staff")]
    labels = [shortened(name, 24) for name in names]
    assert len(set(labels)) == 2
    assert all(len(label) == 24 for label in labels)
    assert shortened("x" * 24, 24) == "x" * 24
