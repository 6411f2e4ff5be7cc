"""Property tests here take the time they take: a slow machine is no failure."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "unhurried", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")
