"""Search, ingest and memory as a knowledge base grows: many tenants and groups on the embedded store."""
