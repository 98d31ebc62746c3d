"""A job from submit to result, and nothing else. It knows no wing."""
