"""The stages between a raw record and a finished notification, as plain objects. The inline engine and Spark run the same ones."""
