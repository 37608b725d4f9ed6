"""Watch a running aggregator by rules, and tell a webhook what begins and what is over."""

from .rules import RunningAggregator as RunningAggregator
from .rules import WatchRules as WatchRules
from .watcher import Watcher as Watcher
from .watcher import WatchEvent as WatchEvent
from .webhook import Webhook as Webhook
