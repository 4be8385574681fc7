"""Import and export: folders of files, and the format that carries every field and revision.

The functions here know neither a store nor a command line; they are given what they call.
"""
