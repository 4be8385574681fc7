"""Checks of a deployment from outside: do its vectors follow its documents? (`zibaldone canary`)"""
