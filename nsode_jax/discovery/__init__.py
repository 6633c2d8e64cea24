"""From measured series to their laws: `discover(t, y)`."""

from nsode_jax.discovery.dispatch import discover
from nsode_jax.discovery.each import discover_each
from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.form_discovery import FormDiscovery
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.results.own_constants import FormCandidate
from nsode_jax.results.result import Candidate
from nsode_jax.results.system_result import SystemCandidate

__all__ = [
    "Candidate",
    "Discovery",
    "DiscoveryError",
    "FormCandidate",
    "FormDiscovery",
    "SystemCandidate",
    "SystemDiscovery",
    "discover",
    "discover_each",
]
