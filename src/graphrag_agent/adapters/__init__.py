"""Wire formats over the typed events. No web framework inside: an app brings its own."""
