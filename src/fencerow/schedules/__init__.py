"""Schedules: jobs that are submitted when their time has come, by whichever worker sees it first."""
