"""Runs the brokers' own code on a simulated Internet: a virtual clock, links that lose and delay, brokers that restart.

Everything follows from a seed, so that a run that went wrong can be repeated.
"""
