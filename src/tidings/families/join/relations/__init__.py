"""What join servers know of tables: rows by entry, and by join value; shared by all joins that want the same of a table."""
