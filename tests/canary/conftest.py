from tests.drivers.cli_fixtures import clean_settings, cli

__all__ = ["clean_settings", "cli"]
