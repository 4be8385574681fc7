"""Work in the background: who runs it, when it is due, and what happens when it dies."""
