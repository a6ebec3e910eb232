"""Joins as semijoins: a row is sent to subscriptions that select it and a partner for it; clients join the rows they hold."""
