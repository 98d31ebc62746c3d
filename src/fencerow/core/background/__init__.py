"""Work beside the jobs: loops that meet trouble, chores, the reaper."""
