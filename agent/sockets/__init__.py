"""The socket edge (spec 09 §6): one connection asks, follows runs and watches threads."""
