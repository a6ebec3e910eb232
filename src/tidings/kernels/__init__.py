"""Compiled data structures: numba kernels on flat arrays, each owned by a thin class. They know no domain and do no I/O."""
