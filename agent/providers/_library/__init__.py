"""The library behind `agent.providers.pydantic_ai`: imported with the first turn, and by nobody else."""
