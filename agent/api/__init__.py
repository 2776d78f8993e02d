"""The HTTP edge: parse, call one flow, render."""
