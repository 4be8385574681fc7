"""What of a code base goes into a prompt, what is searched, and what was sent already."""
