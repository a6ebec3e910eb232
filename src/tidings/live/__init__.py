"""The live pipeline in one process, without Spark: sources, a durable engine, and sinks."""
