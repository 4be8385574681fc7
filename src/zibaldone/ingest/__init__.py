"""Reading files and web pages: fetch their bytes, convert them to text.

`convert` is the way in; it runs `extract` in a child process (`worker`) that can be killed.
"""
