"""The JSON API of the console (spec 08 §11)."""
