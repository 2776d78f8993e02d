"""Comparative and scaling benches: each is one command, prints a table and writes JSON. None of them is a test."""
