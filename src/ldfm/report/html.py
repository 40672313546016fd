"""Parts of a page that needs nothing but itself: no scripts, no files, no network."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22303c; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; border-bottom: 1px solid #dfe7ee; }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0; border-bottom: 1px solid #eef2f5; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; height: auto; } p.note { color: #5a6b7a; font-size: 0.9rem; }
"""


def page(title: str, sections: Sequence[str]) -> str:
    """Put a page together."""
    head = f"<meta charset='utf-8'><title>{escape(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(sections)
    return f"<!doctype html>\n<html lang='en'><head>{head}</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"


def section(title: str, *parts: str) -> str:
    """Give a section under its title."""
    return "\n".join([f"<h2>{escape(title)}</h2>", *parts])


def paragraph(text: str, *, note: bool = False) -> str:
    """Give a paragraph of plain text."""
    return f"<p{' class=note' if note else ''}>{escape(text)}</p>"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Give a table; columns of numbers are set to the right."""
    numeric = [all(_is_number(row[place]) for row in rows) for place in range(len(header))]

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "".join(
            f"<{tag}{' class=number' if right else ''}>{escape(str(cell))}</{tag}>"
            for cell, right in zip(cells, numeric, strict=True)
        )

    lines = "\n".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><tr>{line('th', header)}</tr>\n{lines}</table>"


def _is_number(cell: Any) -> bool:
    text = str(cell).strip("% ").replace(" \u00b1 ", "")
    return text.replace(".", "").replace("-", "").replace(",", "").isdecimal()


def picture(ax: "Axes", what: str) -> str:
    """Give a picture as part of the page; `what` says it in words."""
    stream = io.BytesIO()
    ax.figure.figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f"<img alt='{escape(what, quote=True)}' src='data:image/png;base64,{data}'>"
