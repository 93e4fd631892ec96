"""Schedules that bring a broken rule before the eyes of clients."""
