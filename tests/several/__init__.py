"""Several servers of ours on one database, each in a process of its own."""
