"""A server in development for all tests of the client's commands, and the commands at work in its folder."""

from tests.support.command_fixtures import agent, dev, folder, made_before, muniment, root_folder

__all__ = ["agent", "dev", "folder", "made_before", "muniment", "root_folder"]
