"""Pure values and rules: standard library only, no Django, no clock, no settings."""
