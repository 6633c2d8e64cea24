"""From a measured series to a law: `discover(t, y)`."""

from nsode_jax.discovery.pipeline import DiscoveryError, discover
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.result import Candidate

__all__ = ["Candidate", "Discovery", "DiscoveryError", "discover"]
