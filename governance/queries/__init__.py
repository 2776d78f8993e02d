"""Every figure of the console, the CSV files and the JSON API (spec 08 §7)."""
