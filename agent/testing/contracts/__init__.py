"""The published contracts: lists of cases that every implementation of a port must pass. No test framework needed."""
