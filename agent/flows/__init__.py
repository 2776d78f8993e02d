"""The verbs, one file each; the only code that opens a unit of work. Flows call the store and other flows."""
