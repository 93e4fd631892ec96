"""Scripted schedules: known failures, step by step, on the shipped cores."""
