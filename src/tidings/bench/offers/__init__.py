"""Offers: constraints matched with constraints, beside the relational architecture that the literature proposes for it."""
