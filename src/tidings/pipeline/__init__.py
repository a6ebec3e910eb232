"""The stages between a raw record and a finished notification, as plain objects that both engines run."""
