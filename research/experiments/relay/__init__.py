"""Views that feed views: view sets and rewritings, plans, latency passes, levels, and documents in a wide-area network."""
