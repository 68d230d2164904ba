"""What a turn of the agent loop costs, beside create_agent, a hand-written graph and a bare HTTP loop."""
