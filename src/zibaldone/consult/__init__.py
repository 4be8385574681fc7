"""Ask other models about files, turn after turn."""
