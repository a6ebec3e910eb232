"""The HTTP API: requests and answers as JSON, by the contract in docs/api.md."""
