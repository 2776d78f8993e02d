"""The demo's shop: the tables that the demo's agent answers from, as any site would have them."""
