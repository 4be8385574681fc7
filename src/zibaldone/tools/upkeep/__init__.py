"""Tools for whoever runs the server: the effect `admin` is the operator's, across namespaces."""
