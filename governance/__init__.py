"""What it cost, whether it worked, who decides. Reads what the agent wrote; the agent never imports it."""
