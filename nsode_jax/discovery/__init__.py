"""From a measured series to a law: `discover(t, y)`."""

from nsode_jax.discovery.discover import Candidate, Discovery, DiscoveryError, discover

__all__ = ["Candidate", "Discovery", "DiscoveryError", "discover"]
