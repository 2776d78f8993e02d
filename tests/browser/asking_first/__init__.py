"""An app whose agent asks before it answers, in place of the demo's own."""
