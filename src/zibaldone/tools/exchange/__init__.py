"""Tools of import and export, for the operator's own process."""
