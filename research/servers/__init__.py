"""Region servers: what turns changes into messages to regions of subscription space, as published, and what runs it."""
