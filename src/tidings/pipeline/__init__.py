"""From raw records to finished notifications, as plain objects. The inline engine and Spark run the same objects."""
