"""Compiled parts of the join family."""

from tidings.kernels.jit import kernel

compiled = kernel(_nrt=False)
"""Compiles functions that allocate nothing without counting references.

Arrays come in tuples of a dozen, and to count references to each whenever a function gets one took three quarters of the
time. The caller holds all of them while a kernel runs.
"""
