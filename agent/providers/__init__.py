"""Model providers: `scripted` (deterministic, no network) and `pydantic_ai` (every vendor of that library)."""
