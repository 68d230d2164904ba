"""The way in: parse, chunk, embed, store."""
