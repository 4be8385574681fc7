"""Finding documents."""
