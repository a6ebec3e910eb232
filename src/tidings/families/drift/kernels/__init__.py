"""Compiled structures of the drift family: who follows which row, and when each of them is to be told again."""
