"""One script for each claim about speed; each compares with a floor or a peer in the same run."""
