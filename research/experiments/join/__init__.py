"""Select-join subscriptions: server time, messages and bytes by strategy; by subscriptions, sizes, payload and overlap."""
