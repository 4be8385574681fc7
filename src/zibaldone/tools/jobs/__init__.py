"""Tools that show and steer jobs."""
