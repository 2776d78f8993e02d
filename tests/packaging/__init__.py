"""What is shipped, and that it works in somebody else's site."""
