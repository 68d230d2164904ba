"""Chat models: offline, OpenAI-compatible."""
