"""Gateways: clients as cursors into the notice log, over SSE, WebSocket, polls and webhooks."""
