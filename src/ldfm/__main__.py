"""``python -m ldfm``: the command line, where its script is not on the path."""

from ldfm.cli.main import run

run()
