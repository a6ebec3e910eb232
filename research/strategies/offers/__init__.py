"""The strategy `relational` of offers: the index replaced by Spark SQL, the architecture of the published work."""
