"""Many streams at once through the HTTP app, for a long time: errors, delays and memory."""
