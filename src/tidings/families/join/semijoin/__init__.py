"""Joins as semijoins: a row goes to those who select it and have a partner for it, and clients join what they hold."""
