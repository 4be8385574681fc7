"""The memory profile: tools with the names and arguments of Graphiti's server."""
