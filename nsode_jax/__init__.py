"""Finds the law dy/dt = f(y) behind a time series."""

__version__ = "0.1.0"
