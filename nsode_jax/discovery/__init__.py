"""From a measured series to a law: `discover(t, y)`."""

from nsode_jax.discovery.discover import DiscoveryError, discover
from nsode_jax.discovery.result import Candidate, Discovery

__all__ = ["Candidate", "Discovery", "DiscoveryError", "discover"]
