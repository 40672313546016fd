"""Brute force, independent of the package: nothing here imports ldfm."""
