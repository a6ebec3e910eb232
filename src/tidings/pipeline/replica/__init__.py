"""A replica: the current rows of all tables, kept once, and the subscriptions of one share evaluated over them."""
