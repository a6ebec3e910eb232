"""The content-driven network of the papers, sans I/O: regions of subscription space are routed to the points in them.

Brokers, zones, overlays and the payload cache take messages and give messages; who carries them, and when, is somebody
else's business (`tidings.simulator`). Nothing here knows a family of subscriptions.
"""
