"""MCP, without any transport: what a message means and what is answered to it."""
