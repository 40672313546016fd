"""Parts of a page that needs nothing but itself: no scripts, no files, no network."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

from ldfm.report.parts import Facts, Listing, Note, Picture, Section, Shown

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22303c; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; border-bottom: 1px solid #dfe7ee; }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0; border-bottom: 1px solid #eef2f5; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; height: auto; } p.note { color: #5a6b7a; font-size: 0.9rem; }
"""


def page(title: str, sections: Sequence[Section]) -> str:
    """Put a page together."""
    head = f"<meta charset='utf-8'><title>{escape(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(map(_section, sections))
    return f"<!doctype html>\n<html lang='en'><head>{head}</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"


def _section(section: Section) -> str:
    return "\n".join([f"<h2>{escape(section.title)}</h2>", *map(_part, section.parts)])


def _part(part: str | Note | Facts | Listing | Picture) -> str:
    if isinstance(part, Note):
        return f"<p class=note>{escape(part.text)}</p>"
    if isinstance(part, Facts):
        return table(("", part.title), list(part.facts.items()))
    if isinstance(part, Listing):
        return table(part.header, part.rows)
    if isinstance(part, Picture):
        return _picture(part)
    return f"<p>{escape(part)}</p>"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Give a table; columns of numbers are set to the right."""
    rows = [[cell.text if isinstance(cell, Shown) else cell for cell in row] for row in rows]
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


def _picture(picture: Picture) -> str:
    stream = io.BytesIO()
    picture.draw().figure.figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f"<img alt='{escape(picture.what, quote=True)}' src='data:image/png;base64,{data}'>"
