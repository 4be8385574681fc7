"""An AgentData knowledge base: its rows, where they are read from, and a preflight report."""
