"""Reading what is kept in other databases, and turning their rows into documents."""
