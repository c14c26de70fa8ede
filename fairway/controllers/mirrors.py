"""Where mirrors used to be; see `fairway.store.mirrors`."""

from fairway.store.mirrors import Follower, Mirror, Name, complete

__all__ = ["Follower", "Mirror", "Name", "complete"]
