"""The store on PostgreSQL. `store/open.py` imports it once the extra `postgres` is there."""
