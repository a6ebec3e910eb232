"""The published flow in stages: changes become messages to regions, zones route them, views make notifications of them.

The product evaluates over shared rows instead, at the centre and at gateways. Here the stages are for measuring what messages
cost, by all strategies.
"""
