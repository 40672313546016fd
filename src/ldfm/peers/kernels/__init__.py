"""Numba kernels of the peers: arrays in, arrays out."""
