"""A worker that is really killed, at every point of a turn, and another process that goes on."""
