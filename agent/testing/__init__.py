"""What a host's tests import: the store in memory, the published contracts, fixtures."""
