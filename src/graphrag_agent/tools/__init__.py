"""What the model can call: one file per tool."""
