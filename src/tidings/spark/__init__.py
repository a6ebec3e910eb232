"""The pipeline on Spark Structured Streaming: the only place that imports pyspark."""
