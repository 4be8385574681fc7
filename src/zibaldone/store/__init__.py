"""Where documents live. Work modules see only `port`."""
