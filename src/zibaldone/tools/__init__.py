"""What callers can do: each tool declared once, all reached through one door, `tools.call`."""
