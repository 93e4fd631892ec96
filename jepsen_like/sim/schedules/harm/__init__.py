"""Schedules that bring a broken rule of the quorum before the eyes of its clients."""
