"""Colours, sizes and axes that all pictures share."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#22303c"
ARC = "#2c7fb8"
OTHER = "#d1600b"  # what is told from ARC also by those who do not see red or green
ROOTED = "#f2a541"
PLAIN = "#dfe7ee"
LABEL_SIZE = 8  # points
LETTER = LABEL_SIZE * 0.62 / 72  # inches, of a wide letter
_LONGEST = 36  # letters of a label


def new_axes(size: tuple[float, float]) -> "Axes":
    """Make axes on a new figure of this size in inches."""
    # a Figure made without pyplot needs no screen and is freed with its last reference
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib; try: pip install 'ldfm[plots]'") from error
    figure = Figure(figsize=size)
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def room(ax: "Axes") -> tuple[float, float]:
    """Give width and height of axes in inches, as they are laid out now."""
    box, figure = ax.get_position(), ax.figure
    return box.width * figure.bbox.width / figure.dpi, box.height * figure.bbox.height / figure.dpi


def shortened(label: Any, longest: int = _LONGEST) -> str:
    """Give a label on one line, of at most so many letters; it is cut in the middle, for names often begin alike."""
    text = " ".join(str(label).split())
    if len(text) > longest:
        end = (longest - 1) // 2
        text = f"{text[: longest - 1 - end]}\u2026{text[len(text) - end :]}"
    return text.replace("$", r"\$")  # which would begin a formula
