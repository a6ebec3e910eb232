"""Workloads of relay: views over documents of an auction site, sites that hold the views, and the documents."""
