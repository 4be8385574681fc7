"""The tools of the knowledge base, one file each."""
