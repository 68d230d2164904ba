"""Where chunks lie: one port, several engines."""
