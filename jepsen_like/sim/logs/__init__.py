"""The logs of a simulated world: what each disk holds, and what any replica ever wrote."""
