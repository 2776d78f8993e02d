"""Where a run is driven, nothing else."""
