"""Benchmarks: run, store with provenance, render from what is stored."""
