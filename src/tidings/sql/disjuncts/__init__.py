"""Conditions with OR, `<>`, NOT IN and the like as a bounded set of disjuncts, each a conjunction as all families know it.

`terms.py` multiplies a condition out over different columns (once per template); `value_sets.py` is the algebra of what one
column may be, which everything said about that column comes down to; `template.py` does the rest per subscription.
"""
