"""The engine process of the service."""
