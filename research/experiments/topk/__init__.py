"""Range top-k subscriptions: look-ups, people affected, bytes, redundancy, batches, by k, subscriptions and distributions."""
