"""Races that are really run: processes with threads of their own, which all start at one word."""
