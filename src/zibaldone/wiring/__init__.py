"""The only place where the parts are put together: Settings → Runtime → application.

Two modules, so that a command that only needs a Runtime does not import the HTTP server.
"""
