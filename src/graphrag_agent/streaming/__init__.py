"""From the graph's stream to typed events."""
