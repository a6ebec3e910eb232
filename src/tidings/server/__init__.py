"""The service: an engine process, a notice log, and a front that clients call."""
