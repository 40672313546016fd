"""A page on this machine to explore a model with: set values, see posteriors and dependencies change."""

from ldfm.explorer.server import Explorer

__all__ = ["Explorer"]
