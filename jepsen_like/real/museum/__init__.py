"""The museum's schedules on real processes, through proxies that know frames."""
