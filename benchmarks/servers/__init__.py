"""What the scripts measure against, each served in a process of its own."""
