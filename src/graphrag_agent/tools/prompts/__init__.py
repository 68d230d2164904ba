"""What the models behind the tools `reason` and `critique` are told: one Markdown file each."""
