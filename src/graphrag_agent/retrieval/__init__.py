"""From documents to hits."""
