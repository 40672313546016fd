"""Draw the pictures that pages show: run their code in the folder of pictures. Usage: python docs/render.py"""

import os
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGES = ("pictures.md", "tumours.md")


def code_of(page):
    """Give the Python of a page."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))


if __name__ == "__main__":
    os.chdir(HERE / "images")
    for name in PAGES:
        exec(compile(code_of(HERE / name), name, "exec"), {"__name__": name})
