"""The routes: parse, call one flow, render."""
