"""Tools that ask other models about files."""
