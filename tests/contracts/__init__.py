"""The published contracts, run on everything that is shipped."""
